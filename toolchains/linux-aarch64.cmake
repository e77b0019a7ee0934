# 64-bit Arm Linux: Raspberry Pi OS 13 and Debian 13 on any board of ARMv8.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(cria_target aarch64-linux-gnu)
set(cria_emulator qemu-aarch64)
set(cria_preset aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
