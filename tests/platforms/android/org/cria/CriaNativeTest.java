package org.cria;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.cria.DemoModel.ANSWER;
import static org.cria.DemoModel.QUESTION;
import static org.cria.DemoModel.chat;
import static org.cria.DemoModel.expectFailure;
import static org.cria.DemoModel.greedy;
import static org.cria.DemoModel.load;
import static org.cria.DemoModel.options;
import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import org.cria.CriaException.Status;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** What a model says, what it is told, and what is refused. */
public class CriaNativeTest {
  private static final String LLAMA = "\uD83E\uDD99"; // One character, of four bytes in UTF-8.

  @Rule public final TemporaryFolder folder = new TemporaryFolder();
  private final long model = load();

  @After
  public void close() {
    CriaNative.closeModel(model);
  }

  @Test
  public void answersPieceByPieceOnTheThreadThatWaits() {
    List<String> pieces = new ArrayList<>();
    Thread caller = Thread.currentThread();
    Reply reply =
        CriaNative.send(
            chat(model),
            QUESTION,
            piece -> {
              assertSame(caller, Thread.currentThread());
              pieces.add(piece);
            });
    assertEquals(ANSWER, reply.text);
    assertEquals(ANSWER, String.join("", pieces));
    assertTrue(pieces.size() > 3);
    assertEquals(Reply.StopReason.END, reply.getStopReason());
  }

  @Test
  public void everyFigureOfAReplyIsThatFigure() {
    long chat = chat(model);
    Reply first = CriaNative.send(chat, QUESTION, null);
    assertEquals(0, first.reusedTokens);
    assertEquals(0, first.droppedTokens);
    assertTrue(first.promptTokens > 5);
    assertTrue(first.generatedTokens > 5);
    assertEquals(first.promptTokens + first.generatedTokens, first.contextUsedTokens);
    assertEquals(first.contextUsedTokens, CriaNative.contextUsed(chat));
    assertTrue(first.firstTextSeconds > 0);
    assertTrue(first.totalSeconds > first.firstTextSeconds);
    assertTrue(first.promptTokensPerSecond > first.promptTokens / first.totalSeconds);
    assertTrue(first.generatedTokensPerSecond > first.generatedTokens / first.totalSeconds);

    Reply second = CriaNative.send(chat, "Where do you run?", null);
    assertTrue(second.reusedTokens + 1 >= first.contextUsedTokens);
    CriaNative.resetChat(chat);
    assertEquals(0, CriaNative.contextUsed(chat));
    assertEquals(ANSWER, CriaNative.send(chat, QUESTION, null).text);
  }

  @Test
  public void everyOptionOfGeneratingIsThatOption() {
    GenerationOptions defaults = new GenerationOptions();
    assertEquals(0, defaults.seed);
    assertEquals(0, defaults.maxTokens);
    assertEquals(0.8f, defaults.temperature, 0);
    assertEquals(40, defaults.topK);
    assertEquals(0.95f, defaults.topP, 0);
    assertEquals(0.05f, defaults.minP, 0);
    assertEquals(1, defaults.repeatPenalty, 0);
    assertEquals(64, defaults.repeatLastN);
    assertEquals(4, defaults.keepTokens);
    assertFalse(defaults.parseSpecial);

    GenerationOptions options = greedy();
    options.maxTokens = 3;
    Reply reply = CriaNative.complete(model, "Hello! I am", options, null);
    assertEquals(3, reply.generatedTokens);
    assertEquals(Reply.StopReason.MAX_TOKENS, reply.getStopReason());

    String prompt = "<|im_start|>user\n" + QUESTION + "<|im_end|>\n<|im_start|>assistant\n";
    options = greedy();
    assertNotEquals(ANSWER, CriaNative.complete(model, prompt, options, null).text);
    options.parseSpecial = true;
    assertEquals(ANSWER, CriaNative.complete(model, prompt, options, null).text);

    // At this temperature every token is a matter of chance, and so of the seed.
    GenerationOptions random = DemoModel.endless(20);
    random.seed = -1;
    String text = CriaNative.complete(model, "llama", random, null).text;
    assertEquals(text, CriaNative.complete(model, "llama", random, null).text);
    random.seed = -2;
    assertNotEquals(text, CriaNative.complete(model, "llama", random, null).text);
    random.topK = 1;
    options = greedy();
    options.maxTokens = 20;
    String likeliest = CriaNative.complete(model, "llama", options, null).text;
    assertEquals(likeliest, CriaNative.complete(model, "llama", random, null).text);

    // The rest by its name in what is said of a value that cannot be.
    GenerationOptions wrong = new GenerationOptions();
    wrong.topP = 2;
    expectFailure(
        Status.USAGE, "top_p", () -> CriaNative.complete(model, "a", wrong, null));
    wrong.topP = 1;
    wrong.minP = 2;
    expectFailure(Status.USAGE, "min_p", () -> CriaNative.createChat(model, null, wrong));
    wrong.minP = 0;
    wrong.repeatPenalty = -1;
    long chat = chat(model);
    expectFailure(
        Status.USAGE, "repeat_penalty", () -> CriaNative.setChatOptions(chat, wrong));
  }

  @Test
  public void aFullContextEndsAnAnswerOrMakesRoom() {
    ModelOptions small = options();
    small.contextTokens = 32;
    long model = load(small);
    GenerationOptions options = DemoModel.endless(100);
    options.keepTokens = 2;
    Reply shifted = CriaNative.complete(model, "llama", options, null);
    assertTrue(shifted.droppedTokens > 0);
    assertEquals(Reply.StopReason.MAX_TOKENS, shifted.getStopReason());
    options.keepTokens = 20;
    int dropped = CriaNative.complete(model, "llama", options, null).droppedTokens;
    assertNotEquals(shifted.droppedTokens, dropped);
    options.whenFull = GenerationOptions.WhenFull.STOP;
    Reply stopped = CriaNative.complete(model, "llama", options, null);
    assertEquals(Reply.StopReason.CONTEXT_FULL, stopped.getStopReason());
    CriaNative.closeModel(model);
  }

  @Test
  public void optionsOfAChatChangeWhatFollows() {
    long chat = chat(model);
    GenerationOptions options = greedy();
    options.maxTokens = 2;
    CriaNative.setChatOptions(chat, options);
    assertEquals(2, CriaNative.send(chat, QUESTION, null).generatedTokens);
  }

  @Test
  public void aSystemPromptIsRead() {
    long plain = chat(model);
    long told = CriaNative.createChat(model, "You are a " + LLAMA, greedy());
    int difference =
        CriaNative.send(told, QUESTION, null).promptTokens
            - CriaNative.send(plain, QUESTION, null).promptTokens;
    assertTrue(difference > 0);
  }

  @Test
  public void tellsWhatTheModelIs() throws IOException {
    ModelInfo info = CriaNative.info(model);
    assertEquals("cria-demo", info.name);
    assertEquals(3148032, info.numParameters);
    assertEquals(Files.size(Paths.get(DemoModel.PATH)), info.fileBytes);
    assertEquals(1536, info.vocabSize);
    assertEquals(512, info.maxContextTokens);
    assertEquals(512, info.contextTokens);
    assertEquals(1, info.numThreads);
    assertEquals(1, info.numBatchThreads);
    assertTrue(info.hasChatTemplate);
    assertTrue(CriaNative.version().matches("\\d+\\.\\d+\\.\\d+"));
  }

  @Test
  public void everyOptionOfLoadingIsThatOption() {
    ModelOptions options = options();
    options.contextTokens = 100;
    options.numThreads = 2;
    options.numBatchThreads = 1;
    options.chunkTokens = 7;
    long model = load(options);
    ModelInfo info = CriaNative.info(model);
    assertEquals(100, info.contextTokens);
    assertEquals(2, info.numThreads);
    assertEquals(1, info.numBatchThreads);
    assertEquals(ANSWER, CriaNative.send(chat(model), QUESTION, null).text);
    CriaNative.closeModel(model);

    MemoryPlan chunks = CriaNative.plan(DemoModel.PATH, -1, 0, 0, options);
    options.chunkTokens = 64;
    MemoryPlan larger = CriaNative.plan(DemoModel.PATH, -1, 0, 0, options);
    assertTrue(bytesOf(larger, "activations") > bytesOf(chunks, "activations"));
    assertEquals(bytesOf(larger, "KV cache"), bytesOf(chunks, "KV cache"));
    options.kvType = ModelOptions.KvType.F32;
    MemoryPlan whole = CriaNative.plan(DemoModel.PATH, -1, 0, 0, options);
    options.kvType = ModelOptions.KvType.F16;
    MemoryPlan half = CriaNative.plan(DemoModel.PATH, -1, 0, 0, options);
    assertEquals(bytesOf(whole, "KV cache") / 2, bytesOf(half, "KV cache"));
    options.kvType = ModelOptions.KvType.INT8;
    MemoryPlan small = CriaNative.plan(DemoModel.PATH, -1, 0, 0, options);
    assertEquals(bytesOf(chunks, "KV cache"), bytesOf(small, "KV cache"));

    options.memoryLimitBytes = 1_000_000;
    expectFailure(Status.OUT_OF_MEMORY, "KV cache", () -> load(options));
    options.ignoreMemoryLimits = true;
    CriaNative.closeModel(load(options));

    options.maxTemperatureCelsius = 10;
    expectFailure(Status.USAGE, "10 °C", () -> load(options));
    options.maxTemperatureCelsius = 0;

    options.packing = ModelOptions.Packing.NEVER;
    expectFailure(Status.NOT_FOUND, "pack", () -> load(options));
  }

  private static long bytesOf(MemoryPlan plan, String name) {
    return plan.parts.stream().filter(part -> part.name.equals(name)).findFirst().get().bytes;
  }

  @Test
  public void plansWithoutLoading() {
    ModelOptions options = options();
    MemoryPlan plan = CriaNative.plan(DemoModel.PATH, -1, 0, 0, options);
    assertNull(plan.problem);
    assertEquals("cria-demo", plan.info.name);
    assertEquals(1, plan.info.numThreads);
    long mapped = 0;
    long inMemory = 0;
    for (MemoryPlan.Part part : plan.parts) {
      mapped += part.isMapped ? part.bytes : 0;
      inMemory += part.isMapped ? 0 : part.bytes;
    }
    assertEquals(plan.mappedBytes, mapped);
    assertEquals(plan.privateBytes, inMemory);
    assertTrue(plan.peakBytes >= plan.privateBytes + plan.mappedBytes);
    assertTrue(plan.addressSpaceBytes >= plan.peakBytes);
    options.memoryLimitBytes = 1_000_000;
    assertTrue(CriaNative.plan(DemoModel.PATH, -1, 0, 0, options).problem.contains("KV cache"));
    expectFailure(
        Status.NOT_FOUND, "open", () -> CriaNative.plan("/nowhere.cria", -1, 0, 0, options));
  }

  /** Told of packing, with more threads than the one that may call Java. */
  @Test
  public void tellsOfPackingOnTheThreadThatWaits() throws IOException {
    ModelOptions options = options();
    options.numThreads = 3;
    options.packFolder = folder.getRoot() + "/packs " + LLAMA;
    Thread caller = Thread.currentThread();
    List<Long> done = new ArrayList<>();
    List<String> notices = new ArrayList<>();
    LoadListener listener =
        new LoadListener() {
          @Override
          public void onProgress(long doneBytes, long totalBytes) {
            assertSame(caller, Thread.currentThread());
            assertTrue(doneBytes <= totalBytes);
            done.add(doneBytes);
          }

          @Override
          public void onNotice(String sentence) {
            assertSame(caller, Thread.currentThread());
            notices.add(sentence);
          }
        };
    CriaNative.closeModel(CriaNative.load(DemoModel.PATH, -1, 0, 0, options, listener));
    assertFalse(done.isEmpty());
    assertTrue(notices.toString(), notices.get(0).contains("packing"));
    try (java.util.stream.Stream<Path> files = Files.list(Paths.get(options.packFolder))) {
      assertEquals(1, files.count());
    }

    done.clear();
    options.packing = ModelOptions.Packing.NEVER;
    CriaNative.closeModel(CriaNative.load(DemoModel.PATH, -1, 0, 0, options, listener));
    assertTrue(done.isEmpty());
  }

  @Test
  public void anExceptionEndsTheLoading() {
    for (boolean onProgress : new boolean[] {true, false}) {
      IllegalStateException thrown = new IllegalStateException("from the listener");
      LoadListener listener =
          new LoadListener() {
            @Override
            public void onProgress(long doneBytes, long totalBytes) {
              if (onProgress) {
                throw thrown;
              }
            }

            @Override
            public void onNotice(String sentence) {
              if (!onProgress) {
                throw thrown;
              }
            }
          };
      ModelOptions options = options();
      options.packFolder = folder.getRoot() + "/packs";
      assertSame(
          thrown,
          assertThrows(
              IllegalStateException.class,
              () -> CriaNative.load(DemoModel.PATH, -1, 0, 0, options, listener)));
    }
  }

  @Test
  public void anExceptionEndsTheAnswer() {
    long chat = chat(model);
    IllegalStateException thrown = new IllegalStateException("from the listener");
    int[] pieces = {0};
    TextListener throwing =
        piece -> {
          ++pieces[0];
          if (pieces[0] == 2) {
            throw thrown;
          }
        };
    assertSame(
        thrown,
        assertThrows(
            IllegalStateException.class, () -> CriaNative.send(chat, QUESTION, throwing)));
    assertEquals(2, pieces[0]);
    // Errors are no different, and the chat goes on.
    assertThrows(
        StackOverflowError.class,
        () ->
            CriaNative.complete(
                model,
                "Hello",
                greedy(),
                piece -> {
                  throw new StackOverflowError();
                }));
    assertTrue(CriaNative.send(chat, "Where do you run?", null).text.contains("Cria"));
    CriaNative.resetChat(chat);
    assertEquals(ANSWER, CriaNative.send(chat, QUESTION, null).text);
  }

  /** Each piece is an object, of which a call can hold only so many. */
  @Test
  public void piecesLeaveNothingBehind() {
    List<WeakReference<byte[]>> pieces = new ArrayList<>();
    long[] alive = {0};
    CriaNative.TextReceiver receiver =
        new CriaNative.TextReceiver(null) {
          @Override
          void onText(byte[] utf8) {
            pieces.add(new WeakReference<>(utf8));
            if (pieces.size() == 20) {
              System.gc();
              alive[0] = pieces.stream().filter(piece -> piece.get() != null).count();
            }
          }
        };
    byte[] prompt = "llama".getBytes(UTF_8);
    CriaNative.complete(model, prompt, DemoModel.endless(100), receiver, new Reply());
    assertTrue(pieces.size() >= 20);
    assertTrue(alive[0] + " of 20", alive[0] <= 2);
  }

  @Test
  public void charactersBeyondTheBasicPlaneCross() throws IOException {
    for (String text : List.of("", "a baby llama", "Füchse & " + LLAMA + "\uD83D\uDE00", "\n")) {
      int[] tokens = CriaNative.tokenize(model, text, false, false);
      assertEquals(text, CriaNative.textOf(model, tokens));
    }
    long chat = chat(model);
    CriaNative.send(chat, "I like " + LLAMA, null);

    Path path = folder.getRoot().toPath().resolve(LLAMA + ".cria");
    String name = path.toString();
    expectFailure(Status.NOT_FOUND, name, () -> CriaNative.load(name, -1, 0, 0, options(), null));
    Files.createSymbolicLink(path, Paths.get(DemoModel.PATH));
    CriaNative.closeModel(CriaNative.load(name, -1, 0, 0, options(), null));
  }

  /** A character that the model writes byte by byte comes as a whole. */
  @Test
  public void charactersOfAnAnswerAreWhole() {
    int[] bytes = CriaNative.tokenize(model, LLAMA, false, false);
    assertTrue(bytes.length >= 4);
    GenerationOptions options = DemoModel.endless(400);
    StringBuilder all = new StringBuilder();
    Reply reply =
        CriaNative.complete(
            model,
            LLAMA + LLAMA + LLAMA + LLAMA,
            options,
            piece -> {
              assertFalse(Character.isHighSurrogate(piece.charAt(piece.length() - 1)));
              assertFalse(Character.isLowSurrogate(piece.charAt(0)));
              all.append(piece);
            });
    assertEquals(reply.text, all.toString());
    assertTrue(reply.text.codePoints().anyMatch(c -> c > 0x7F));

    // The demo model never says so; this is what would come of it.
    List<String> pieces = new ArrayList<>();
    new CriaNative.TextReceiver(pieces::add).onText(LLAMA.getBytes(UTF_8));
    assertEquals(List.of(LLAMA), pieces);
  }

  @Test
  public void textsThatUtf8DoesNotHave() {
    // Half of a pair becomes what Java makes of it.
    assertArrayEquals(
        CriaNative.tokenize(model, "a?b", false, false),
        CriaNative.tokenize(model, "a\uD83Eb", false, false));
    // Paths end at a zero character, texts do not.
    expectFailure(
        Status.USAGE, "U+0000", () -> CriaNative.load("a\0", -1, 0, 0, options(), null));
    assertTrue(
        CriaNative.tokenize(model, "a\0b", false, false).length
            > CriaNative.tokenize(model, "a", false, false).length);
    long chat = CriaNative.createChat(model, "a\0", greedy());
    CriaNative.send(chat, "a\0b", null);
    assertEquals(new Message("system", "a\0"), CriaNative.messages(chat).get(0));
    assertEquals(new Message("user", "a\0b"), CriaNative.messages(chat).get(1));
  }

  @Test
  public void messagesGoInAndOut() {
    List<Message> given =
        List.of(new Message("system", "Be kind to a " + LLAMA), new Message("user", QUESTION));
    long chat = CriaNative.createChatFrom(model, given, greedy());
    assertEquals(given, CriaNative.messages(chat));
    Reply first = CriaNative.answer(chat, false, null);
    assertEquals(first.text, CriaNative.messages(chat).get(2).content);
    assertEquals("assistant", CriaNative.messages(chat).get(2).role);
    expectFailure(Status.USAGE, "answer", () -> CriaNative.answer(chat, false, null));
    Reply again = CriaNative.answer(chat, true, null);
    assertEquals(first.text, again.text);
    assertEquals(1, again.promptTokens);
    CriaNative.send(chat, new Message("tool", "42"), null);
    assertEquals(new Message("tool", "42"), CriaNative.messages(chat).get(3));
    CriaNative.dropLastTurn(chat);
    assertEquals(given.subList(0, 1), CriaNative.messages(chat));
    expectFailure(Status.USAGE, "no message", () -> CriaNative.dropLastTurn(chat));
    expectFailure(Status.USAGE, "no message", () -> CriaNative.answer(chat, false, null));
    // While an answer changes them, they cannot be read.
    CriaNative.send(
        chat,
        QUESTION,
        piece -> expectFailure(Status.USAGE, "in use", () -> CriaNative.messages(chat)));
    assertEquals(3, CriaNative.messages(chat).size());
  }

  @Test
  public void chatsAreKeptInFiles() throws IOException {
    File file = File.createTempFile("chat", ".session");
    long chat = CriaNative.createChat(model, "You are a " + LLAMA, greedy());
    String first = CriaNative.send(chat, QUESTION, null).text;
    CriaNative.saveChat(chat, file.getPath());
    CriaNative.LoadedChat loaded = CriaNative.loadChat(model, file.getPath(), greedy());
    assertTrue(loaded.isContextRestored);
    assertEquals(CriaNative.messages(chat), CriaNative.messages(loaded.chat));
    assertEquals(first, CriaNative.messages(loaded.chat).get(2).content);
    assertTrue(CriaNative.contextUsed(loaded.chat) > 0);
    expectFailure(
        Status.USAGE, "U+0000", () -> CriaNative.loadChat(model, "a\0", greedy()));
    expectFailure(Status.USAGE, "U+0000", () -> CriaNative.saveChat(chat, "a\0"));
    expectFailure(Status.USAGE, "path", () -> CriaNative.saveChat(chat, (String) null));
    expectFailure(
        Status.USAGE, "path", () -> CriaNative.loadChat(model, (String) null, greedy()));
    Files.write(file.toPath(), new byte[100]);
    expectFailure(
        Status.INVALID_FILE, "session", () -> CriaNative.loadChat(model, file.getPath(), greedy()));
    assertTrue(file.delete());
    expectFailure(
        Status.NOT_FOUND, "session", () -> CriaNative.loadChat(model, file.getPath(), greedy()));
  }

  @Test
  public void messagesAreRenderedWithoutTheModel() {
    List<Message> messages = List.of(new Message("user", LLAMA));
    String text = "<|im_start|>user\n" + LLAMA + "<|im_end|>\n";
    assertEquals(text, CriaNative.render(model, messages, "", false));
    assertEquals(
        text + "<|im_start|>assistant\n", CriaNative.render(model, messages, "{\"a\": 1}", true));
    expectFailure(Status.USAGE, "JSON", () -> CriaNative.render(model, messages, "a", true));
    long chat = chat(model);
    CriaNative.setVariables(chat, "{\"enable_thinking\": false}");
    expectFailure(Status.USAGE, "JSON", () -> CriaNative.setVariables(chat, "{"));
    assertEquals(ANSWER, CriaNative.send(chat, QUESTION, null).text);
  }

  @Test
  public void answersAreSteered() {
    GenerationOptions options = greedy();
    options.stop.add("never said");
    options.stop.add(" a baby");
    options.logitBias.put(7, -0.5f);
    long chat = CriaNative.createChat(model, null, options);
    Reply reply = CriaNative.send(chat, QUESTION, null);
    assertEquals("Hello! I am Cria,", reply.text);
    assertEquals(Reply.StopReason.STOP_STRING, reply.getStopReason());

    int usual = CriaNative.tokenize(model, ANSWER, false, false)[0];
    options.stop.clear();
    options.logitBias.put(usual, Float.NEGATIVE_INFINITY);
    CriaNative.setChatOptions(chat, options);
    AnswerListener listener =
        new AnswerListener() {
          @Override
          public void onToken(Token token) {
            assertNotEquals(usual, token.id);
          }
        };
    assertTrue(CriaNative.answer(chat, true, listener).generatedTokens > 0);

    options.logitBias.put(-1, 0f);
    expectFailure(Status.USAGE, "token -1", () -> CriaNative.setChatOptions(chat, options));
    options.logitBias = null;
    expectFailure(Status.USAGE, "logitBias is null", () -> CriaNative.setChatOptions(chat, options));
    GenerationOptions empty = greedy();
    empty.stop.add("");
    expectFailure(Status.USAGE, "empty", () -> CriaNative.complete(model, "a", empty, null));
    empty.stop.set(0, null);
    expectFailure(Status.USAGE, "NULL", () -> CriaNative.complete(model, "a", empty, null));
    empty.stop = null;
    expectFailure(Status.USAGE, "stop is null", () -> CriaNative.complete(model, "a", empty, null));
  }

  @Test
  public void answersMatchTheirConstraint() {
    ModelOptions modelOptions = options();
    modelOptions.maxConstraints = 1;
    long constrained = load(modelOptions);
    GenerationOptions options = greedy();
    options.constraintKind = GenerationOptions.ConstraintKind.REGEX;
    options.constraint = "[0-9]{3} \u00e4\u20ac";
    String text = CriaNative.complete(constrained, "llama", options, null).text;
    assertTrue(text, text.matches("[0-9]{3} \u00e4\u20ac"));
    options.constraintKind = GenerationOptions.ConstraintKind.GRAMMAR;
    options.constraint = "root ::= \"yes\" | \"no\"";
    long chat = CriaNative.createChat(constrained, null, options);
    assertTrue(CriaNative.send(chat, QUESTION, null).text.matches("yes|no"));
    options.constraintKind = GenerationOptions.ConstraintKind.JSON_SCHEMA;
    options.constraint = "{\"enum\": [1, true]}";
    CriaNative.setChatOptions(chat, options);
    assertTrue(CriaNative.send(chat, QUESTION, null).text.matches("1|true"));
    options.constraintKind = GenerationOptions.ConstraintKind.JSON;
    expectFailure(
        Status.USAGE, "takes none", () -> CriaNative.complete(constrained, "a", options, null));
    options.constraint = "";
    CriaNative.complete(constrained, "a", options, null);
    options.constraintKind = GenerationOptions.ConstraintKind.JSON_OBJECT;
    assertTrue(CriaNative.complete(constrained, "a", options, null).text.startsWith("{"));
    options.constraint = null;
    expectFailure(
        Status.USAGE,
        "constraint is null",
        () -> CriaNative.complete(constrained, "a", options, null));
    options.constraint = "";
    options.constraintKind = null;
    expectFailure(
        Status.USAGE,
        "constraintKind is null",
        () -> CriaNative.complete(constrained, "a", options, null));
    options.constraintKind = GenerationOptions.ConstraintKind.JSON;
    expectFailure(
        Status.USAGE, "max_constraints", () -> CriaNative.complete(model, "a", options, null));
    CriaNative.closeModel(constrained);
  }

  @Test
  public void anAnswerListenerHearsOfTokensAndThePrompt() {
    Thread caller = Thread.currentThread();
    List<Token> tokens = new ArrayList<>();
    List<Integer> done = new ArrayList<>();
    StringBuilder text = new StringBuilder();
    AnswerListener listener =
        new AnswerListener() {
          @Override
          public void onText(String piece) {
            text.append(piece);
          }

          @Override
          public void onToken(Token token) {
            assertSame(caller, Thread.currentThread());
            tokens.add(token);
          }

          @Override
          public void onPrompt(int doneTokens, int totalTokens) {
            assertTrue(doneTokens <= totalTokens);
            done.add(doneTokens);
          }
        };
    Reply reply = CriaNative.send(chat(model), QUESTION, listener);
    assertEquals(ANSWER, text.toString());
    assertEquals(reply.generatedTokens, tokens.size());
    StringBuilder ofTokens = new StringBuilder();
    for (int i = 0; i < tokens.size(); ++i) {
      assertEquals(i, tokens.get(i).index);
      assertTrue(tokens.get(i).logProbability <= 0 && tokens.get(i).logProbability > -2);
      ofTokens.append(tokens.get(i).text);
    }
    assertEquals(ANSWER, ofTokens.toString());
    assertEquals(CriaNative.tokenize(model, ANSWER, false, false)[0], tokens.get(0).id);
    assertEquals(List.of(0, reply.promptTokens), done);
  }

  @Test
  public void anExceptionOfAnAnswerListenerEndsTheCall() {
    long chat = chat(model);
    for (boolean atToken : new boolean[] {true, false}) {
      IllegalStateException thrown = new IllegalStateException("from the listener");
      AnswerListener listener =
          new AnswerListener() {
            @Override
            public void onToken(Token token) {
              if (atToken) {
                throw thrown;
              }
            }

            @Override
            public void onPrompt(int doneTokens, int totalTokens) {
              if (!atToken) {
                throw thrown;
              }
            }
          };
      assertSame(
          thrown,
          assertThrows(
              IllegalStateException.class, () -> CriaNative.send(chat, QUESTION, listener)));
      assertSame(
          thrown,
          assertThrows(
              IllegalStateException.class,
              () ->
                  CriaNative.complete(model, "llama", DemoModel.endless(), listener)));
    }
    // The token that came first is kept.
    assertEquals(2, CriaNative.messages(chat).size());
    CriaNative.resetChat(chat);
    assertEquals(ANSWER, CriaNative.send(chat, QUESTION, null).text);
  }

  @Test
  public void logitsAreRead() {
    float[] logits = CriaNative.logits(model, "Hello! I am", false, null);
    assertEquals(1536, logits.length);
    GenerationOptions options = greedy();
    options.maxTokens = 1;
    List<Token> tokens = new ArrayList<>();
    CriaNative.complete(
        model,
        "Hello! I am",
        options,
        new AnswerListener() {
          @Override
          public void onToken(Token token) {
            tokens.add(token);
          }
        });
    double sum = 0;
    float largest = Float.NEGATIVE_INFINITY;
    for (float logit : logits) {
      sum += Math.exp(logit);
      largest = Math.max(largest, logit);
    }
    assertEquals(largest, logits[tokens.get(0).id], 0.01);
    assertEquals(largest - Math.log(sum), tokens.get(0).logProbability, 0.01);
    long chat = chat(model);
    expectFailure(Status.USAGE, "no message", () -> CriaNative.chatLogits(chat, null));
    CriaNative.send(chat, QUESTION, null);
    assertEquals(1536, CriaNative.chatLogits(chat, null).length);
    expectFailure(
        Status.USAGE, "prompt is NULL", () -> CriaNative.logits(model, null, false, null));
  }

  @Test
  public void textsAreEmbedded() {
    float[] hello = CriaNative.embed(model, "Hello! I am", null);
    assertTrue(hello.length > 1);
    double square = 0;
    for (float number : hello) {
      square += number * number;
    }
    assertEquals(1, square, 1e-5);
    assertArrayEquals(hello, CriaNative.embed(model, "Hello! I am", null), 0f);
    double product = 0;
    float[] other = CriaNative.embed(model, "Where do you run?", null);
    for (int i = 0; i < hello.length; ++i) {
      product += hello[i] * other[i];
    }
    assertTrue(product < 0.9999);
    // The listener is told of the prompt, and can end the call.
    List<Integer> done = new ArrayList<>();
    CriaNative.embed(
        model,
        "Hello! I am",
        new AnswerListener() {
          @Override
          public void onPrompt(int doneTokens, int totalTokens) {
            done.add(doneTokens);
          }
        });
    assertEquals(0, (int) done.get(0));
    assertTrue(done.get(done.size() - 1) > 1);
    expectFailure(Status.USAGE, "text is NULL", () -> CriaNative.embed(model, null, null));
    expectFailure(Status.USAGE, "the model is closed", () -> CriaNative.embed(0, "a", null));
    StringBuilder longText = new StringBuilder();
    for (int i = 0; i < 10000; ++i) {
      longText.append("Hello! ");
    }
    expectFailure(
        Status.OUT_OF_RANGE,
        "context",
        () -> CriaNative.embed(model, longText.toString(), null));
  }

  @Test
  public void aChatIsCancelledUntilThatIsCleared() {
    long chat = chat(model);
    long other = chat(model);
    CriaNative.cancelChat(chat);
    for (int i = 0; i < 2; ++i) {
      expectFailure(Status.CANCELLED, "stopped", () -> CriaNative.send(chat, QUESTION, null));
    }
    assertEquals(ANSWER, CriaNative.send(other, QUESTION, null).text);
    CriaNative.clearCancelOfChat(chat);
    Reply reply = CriaNative.send(chat, QUESTION, piece -> CriaNative.cancelChat(chat));
    assertEquals(Reply.StopReason.CANCELLED, reply.getStopReason());
    // A number that is not open is nothing to cancel.
    CriaNative.cancelChat(0);
    CriaNative.clearCancelOfChat(0);
  }

  @Test
  public void specialTokensAndTheBeginning() {
    assertEquals(1, CriaNative.tokenize(model, "<|im_end|>", false, true).length);
    assertTrue(CriaNative.tokenize(model, "<|im_end|>", false, false).length > 1);
    assertEquals("", CriaNative.textOf(model, new int[] {}));
    assertEquals("", CriaNative.textOf(model, new int[] {-1, Integer.MAX_VALUE}));
  }

  private static int numberOf(FileDescriptor descriptor) throws ReflectiveOperationException {
    Field number = FileDescriptor.class.getDeclaredField("fd");
    number.setAccessible(true);
    return number.getInt(descriptor);
  }

  @Test
  public void opensAPartOfAnOpenFile() throws Exception {
    byte[] bytes = Files.readAllBytes(Paths.get(DemoModel.PATH));
    Path apk = folder.newFile("app.apk").toPath();
    for (int lead : new int[] {0, 64, 4097}) {
      try (OutputStream out = Files.newOutputStream(apk)) {
        out.write(new byte[lead]);
        out.write(bytes);
        out.write(lead == 0 ? new byte[0] : new byte[100]);
      }
      long opened;
      try (FileInputStream file = new FileInputStream(apk.toFile())) {
        int number = numberOf(file.getFD());
        long length = lead == 0 ? 0 : bytes.length;
        MemoryPlan plan = CriaNative.plan(null, number, lead, length, options());
        assertEquals(bytes.length, plan.info.fileBytes);
        opened = CriaNative.load(null, number, lead, length, options(), null);
        expectFailure(
            Status.INVALID_FILE,
            "not a Cria model",
            () -> CriaNative.load(null, number, lead + 1, 0, options(), null));
      }
      // The caller's descriptor is closed by now.
      assertEquals(ANSWER, CriaNative.send(chat(opened), QUESTION, null).text);
      CriaNative.closeModel(opened);
    }
  }

  @Test
  public void nullsAreRefused() {
    long chat = chat(model);
    expectFailure(
        Status.USAGE, "content is NULL", () -> CriaNative.send(chat, (String) null, null));
    expectFailure(
        Status.USAGE, "message is null", () -> CriaNative.send(chat, (Message) null, null));
    expectFailure(
        Status.USAGE, "role is NULL", () -> CriaNative.send(chat, new Message(null, "a"), null));
    expectFailure(
        Status.USAGE, "messages is null", () -> CriaNative.createChatFrom(model, null, greedy()));
    List<Message> holes = new ArrayList<>();
    holes.add(null);
    expectFailure(
        Status.USAGE, "message is null", () -> CriaNative.render(model, holes, "", true));
    expectFailure(Status.USAGE, "json is NULL", () -> CriaNative.setVariables(chat, null));
    expectFailure(
        Status.USAGE, "prompt is NULL", () -> CriaNative.complete(model, null, greedy(), null));
    expectFailure(Status.USAGE, "null", () -> CriaNative.complete(model, "a", null, null));
    expectFailure(Status.USAGE, "null", () -> CriaNative.createChat(model, null, null));
    expectFailure(Status.USAGE, "null", () -> CriaNative.setChatOptions(chat, null));
    expectFailure(
        Status.USAGE, "text is NULL", () -> CriaNative.tokenize(model, null, true, false));
    expectFailure(Status.USAGE, "null", () -> CriaNative.textOf(model, null));
    expectFailure(Status.USAGE, "null", () -> load(null));
    expectFailure(
        Status.USAGE, "path", () -> CriaNative.load(null, -1, 0, 0, options(), null));
    ModelOptions options = options();
    options.kvType = null;
    expectFailure(Status.USAGE, "kvType is null", () -> load(options));
    GenerationOptions generation = greedy();
    generation.whenFull = null;
    expectFailure(
        Status.USAGE, "whenFull is null", () -> CriaNative.complete(model, "a", generation, null));
  }

  @Test
  public void numbersThatCannotBeAreRefused() {
    ModelOptions options = options();
    options.contextTokens = -1;
    expectFailure(Status.USAGE, "contextTokens is -1", () -> load(options));
    options.contextTokens = 0;
    options.memoryLimitBytes = -5;
    expectFailure(Status.USAGE, "memoryLimitBytes is -5", () -> load(options));
    expectFailure(
        Status.USAGE, "offsetBytes", () -> CriaNative.load(null, 0, -1, 0, options(), null));
    expectFailure(
        Status.USAGE, "lengthBytes", () -> CriaNative.load(null, 0, 0, -1, options(), null));
    expectFailure(
        Status.USAGE,
        "offset_bytes",
        () -> CriaNative.load(DemoModel.PATH, -1, 64, 0, options(), null));
    expectFailure(
        Status.IO, "descriptor", () -> CriaNative.load(null, 99999, 0, 0, options(), null));
    GenerationOptions generation = greedy();
    generation.topK = -1;
    expectFailure(
        Status.USAGE, "topK is -1", () -> CriaNative.complete(model, "a", generation, null));
  }

  @Test
  public void aMessageBeyondTheContextIsRefusedAndForgotten() {
    long chat = chat(model);
    String message = "a b c d ".repeat(1000);
    expectFailure(Status.OUT_OF_RANGE, "context", () -> CriaNative.send(chat, message, null));
    assertEquals(ANSWER, CriaNative.send(chat, QUESTION, null).text);
  }
}
