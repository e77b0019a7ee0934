# Tests of a build for another processor, under qemu-user: which programs run on which of its cores, and which tests
# are skipped there. Emulated programs start slowly, so each program is one test of ctest, NAME@CORE.

if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(FATAL_ERROR "The emulator that runs the tests, ${cria_emulator}, is not installed: run "
                      "`./dev test ${cria_preset}`, or install qemu-user, or give -DCRIA_BUILD_TESTS=OFF.")
endif()

# A program runs on the first core if a processor decides something of what it tests: instructions, the order of memory
# accesses, pages, the width of pointers, or what the system says of itself. On the other cores, the programs run whose
# results depend on XNNPACK's kernels; on the cores of boards, also the programs that pack for them. The sanitizers' build
# (CMakePresets.json) has a `char` without a sign, as Arm has.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # Raspberry Pi 5; Pi 3 and Pi 4, which have no dot products; and a core with all instruction sets.
  set(emulated_cores cortex-a76 cortex-a53 cortex-a72 max)
  set(emulated_cores_of_boards cortex-a53 cortex-a72)
  set(emulated_on_first
      "^(budget_zero_allocation_test|c_api_|cli_cria_test|converter_calibrate_numeric_tests|core_|decode_(tests|decoder_test|families_test)|emulation_|golden_|llm_engine_drafts_test|model_|ops_|platforms_posix_|xnn_)")
else()
  # Raspberry Pi 2.
  set(emulated_cores cortex-a7)
  set(emulated_cores_of_boards)
  set(emulated_on_first
      "^(c_api_|cli_cria_test|core_|decode_tests|emulation_cores_test|golden_(kept_files|stories260k)_test|model_|ops_|platforms_posix_|xnn_)")
endif()
option(CRIA_EMULATE_ALL "Also emulate tests of what no processor decides" OFF)
# Programs that test sockets, time-outs, the bytes of a page and the tests' own reference run on no core.
set(emulated_nowhere "^(serve_(http|page)|reference)_tests$")
if(CRIA_EMULATE_ALL)
  set(emulated_on_first ".")
endif()
set(emulated_by_xnnpack "^(xnn_tests|golden_kept_files_test|emulation_cores_test)")
set(emulated_by_layout "^emulation_pack_for_test")
# Tests of code that only another core than the first runs, in a program that runs on the first alone.
#   PROGRAM|CORE|FILTER
set(emulated_on_another
  "decode_decoder_test|cortex-a72|*"
  "ops_tests|max|Shapes/TiledProductTest.*:Find*KernelTest.*"
  "ops_tests|cortex-a72|*Attention*:BlockProductsTest.*")

# Tests that cannot pass under an emulator, or take it long for nothing that depends on the processor, and the reason;
# ctest reports them as skipped.
#   PROGRAM|FILTER|REASON
set(not_emulated
  "budget_zero_allocation_test|Schemes/*ZeroAllocation.*/F32|products of f32 take a minute there, and allocate no more than others"
  "budget_tests|MemoryPlanMeasured.*|the emulator's memory would be measured with the program's"
  "budget_tests|MemoryLimit.*|the emulator's memory would be limited with the program's, or not at all"
  "c_api_tests|PlanTest.PackedWeightsAreMappedWhereThereIsAFolderForThem:PlanTest.SaysWhatWouldFitALimit|the emulator's memory grows between two plans"
  "cli_convert_tests|ConvertWithCalibration.*|they calibrate for a minute there, and converter_calibrate_tests do so, too"
  "cli_convert_tests|ConvertForATarget.TheFileHasTheSizeThatWasAskedFor|it converts for several targets, and another test for one"
  "cli_convert_tests|Ends.*:InterruptedConversion.*|conversions that are stopped take minutes there, and end alike on every processor"
  "cli_models_tests|KilledPull.AtAnyMomentItLeavesAStoreThatWorks|it converts a hundred times, and processes end alike on every processor"
  "cli_tests|BenchCommand.AProfileSumsUpToTheWhole|it measures the emulator for a minute"
  "cli_tests|PackCrash.KilledAtAnyMomentItLeavesNothingThatHarms|the same for packing"
  "cli_tests|MemoryLimitFlag.WhatARefusalOffersFits|the emulator's memory would count as the program's"
  "converter_calibrate_tests|Families/FamilySteps.AnEqualizedModelComputesTheSame/*:Families/FamilySteps.SensitivityIsTheDivergenceOfOneRoundedMatrix/*|their steps are compared with the decoder's for every family, and SensitivityTest measures one"
  "converter_calibrate_tests|Families/FamilyCalibration.*|they calibrate for minutes there, and CalibrateTest does so, too"
  "converter_calibrate_tests|CalibrateTest.GoesOnAfterAStop:CalibrateTest.LargeChannelsCostLittle:CalibrateTest.ReportsProgressAndCanBeCancelled:CalibrateTest.ThreadsDoNotChangeTheFile|they calibrate up to four times each, and what they test is the same on every processor"
  "converter_calibrate_tests|MixtureCalibrationTest.AnExpertThatFewTokensReachIsRounded:MixtureCalibrationTest.GoesOnAfterAStop:MixtureCalibrationTest.ThreadsDoNotChangeTheFile|the same for mixtures"
  "converter_calibrate_tests|MatrixCalibration.PartsOfManyInputsAreSolvedByThemselves|factors of so many inputs take a minute there, and other tests solve fewer"
  "converter_gguf_tests|Families/*:GgufCheckpointTest.MistralIsALlamaWithAWindow:GgufCheckpointTest.SoAreLlamasRelatives|files are the same on every processor"
  "converter_tests|ConvertTest.BytesDoNotDependOnTheNumberOfThreads|it takes a minute there, and slices are the same on every processor"
  "core_tests|Utf8Test.EveryCodePoint|it takes most of a minute there, and UTF-8 is the same on every processor"
  "decode_contract_test|DecoderWindows.DropsAreThoseOfAllPages|it reads thousands of tokens, and pages are dropped alike on every processor"
  "decode_families_test|*.ThreadsChangeNoBit/*:*.ChunksAgreeWithOnePass/*:*.F32IsTheReference/*:*.TheReferenceComputesItToo/*|they take minutes there, and comparing with transformers and quantized models sees the same kernels"
  "golden_tests|DemoModel.SmallerKeysAndValuesCostLittle|it takes minutes there, and ops_tests compare attention over each type with the naive way"
  "golden_stories260k_test|*.QuantizedGgufCostsWhatItsQuantizationCosts:*.ShardedBf16IsTheSameModel|what the converter reads is the same on every processor"
  "grammar_tests|PatternPcre2Test.*:PatternTest.LargePatternsAreRead:ExpressionsReferenceTest.DerivativesMatch*|they compare thousands of patterns, whose automata are the same on every processor"
  "llm_engine_memory_test|*EngineAddressSpace*|the emulator keeps no limit of the address space"
  "platforms_posix_memory_tests|*.AddressSpaceIsWhatTheProcessMayMap|the emulator keeps no such limit"
  "platforms_posix_memory_tests|UseOneHeapTest.*|the emulator's own threads have heaps of their own"
  "support_tests|*.LimitsTheAddressSpace|the emulator keeps no limit of the address space"
  "text_tests|NfcTest.EveryCodePointBesideOthersIsAsTheNaiveWayHasIt|the tables of characters are the same on every processor")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^armv7")
  list(APPEND not_emulated
       "platforms_posix_memory_tests|MemoryUsageTest.AddressSpaceCountsUntouchedMappings|the emulator maps all 32 bits at once")
endif()

# About how long the longest programs take, in seconds beside each other: they start first, so that no processor waits at the
# end.
set(emulated_seconds_cli_convert_tests 75)
set(emulated_seconds_cli_tests 70)
set(emulated_seconds_decode_families_test 90)
set(emulated_seconds_ops_tests 50)
set(emulated_seconds_decode_decoder_test 70)
set(emulated_seconds_emulation_same_model_file_test 52)
set(emulated_seconds_cli_chat_tests 47)
set(emulated_seconds_decode_contract_test 40)
set(emulated_seconds_llm_engine_drafts_test 40)
set(emulated_seconds_xnn_tests 33)
set(emulated_seconds_golden_tests 80)
set(emulated_seconds_c_api_tests 60)
set(emulated_seconds_budget_zero_allocation_test 33)
set(emulated_seconds_golden_stories260k_test 28)

# cria_runnable(VARIABLE TARGET): sets VARIABLE to the file that a test starts to run TARGET. The kernel cannot start
# programs of another processor, so it is a script that starts the emulator.
function(cria_runnable variable target)
  set(script ${CMAKE_BINARY_DIR}/emulated/${target})
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR "' '" emulator)
  file(GENERATE OUTPUT ${script}
       CONTENT "#!/bin/sh\nexec '${emulator}' '$<TARGET_FILE:${target}>' \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                        WORLD_READ WORLD_EXECUTE)
  set(${variable} ${script} PARENT_SCOPE)
endfunction()

# Adds the tests of a program that match FILTER, on a core.
function(cria_add_emulated_test program core filter)
  add_test(NAME ${program}@${core} COMMAND ${program} --gtest_filter=${filter} --gtest_brief=1)
  set_tests_properties(${program}@${core} PROPERTIES
    TIMEOUT 1500 LABELS ${core} SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\]"
    ENVIRONMENT "QEMU_CPU=${core};CRIA_PACK_CACHE=${pack_cache}-${core}"
    ${ARGN})
  if(DEFINED emulated_seconds_${program})
    set_tests_properties(${program}@${core} PROPERTIES COST ${emulated_seconds_${program}})
  endif()
endfunction()

# cria_add_tests(PROGRAM [PROPERTY VALUE]...): adds the tests of a program for each core on which it runs.
function(cria_add_tests program)
  set(cores)
  set(others ${emulated_cores})
  list(POP_FRONT others first)
  if(program MATCHES "${emulated_on_first}" AND NOT program MATCHES "${emulated_nowhere}")
    list(APPEND cores ${first})
  endif()
  if(program MATCHES "${emulated_by_xnnpack}")
    list(APPEND cores ${others})
  elseif(program MATCHES "${emulated_by_layout}")
    list(APPEND cores ${emulated_cores_of_boards})
  endif()
  if(NOT cores)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()

  set(filter)
  foreach(entry IN LISTS not_emulated)
    string(REPLACE "|" ";" entry "${entry}")
    list(GET entry 0 entry_program)
    if(entry_program STREQUAL program)
      list(GET entry 1 tests)
      list(GET entry 2 reason)
      list(APPEND filter "${tests}")
      add_test(NAME "${program}.${tests}" COMMAND ${CMAKE_COMMAND} -E echo
               "report: not emulated: ${program}, ${tests}: ${reason}")
      set_tests_properties("${program}.${tests}" PROPERTIES SKIP_REGULAR_EXPRESSION "." LABELS report)
    endif()
  endforeach()
  list(JOIN filter ":" filter)
  set(filter "-${filter}")
  foreach(core IN LISTS cores)
    cria_add_emulated_test(${program} ${core} "${filter}" ${ARGN})
  endforeach()
  foreach(entry IN LISTS emulated_on_another)
    string(REPLACE "|" ";" entry "${entry}")
    list(POP_FRONT entry entry_program core tests)
    if(entry_program STREQUAL program AND core IN_LIST emulated_cores)
      cria_add_emulated_test(${program} ${core} "${tests}" ${ARGN})
    endif()
  endforeach()
endfunction()
