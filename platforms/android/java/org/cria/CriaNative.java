package org.cria;

import java.nio.charset.StandardCharsets;

/**
 * The native methods, and the conversion of texts for them. Only the classes of this package use
 * them: apps use Model and Chat.
 *
 * <p>A model or a chat is a number. A number that is not open is refused with a
 * CriaException. Any thread may call; only one at a time may generate with a model.
 */
final class CriaNative {
  static {
    System.loadLibrary("cria_jni");
  }

  private CriaNative() {}

  // Strings are passed as UTF-8 bytes, because JNI's own encoding differs above U+FFFF.
  private static byte[] utf8(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }

  /** Receives the pieces of an answer, in whole characters, on the thread that waits for it. */
  static class TextReceiver {
    private final TextListener listener;
    private final StringBuilder all = new StringBuilder();

    TextReceiver(TextListener listener) {
      this.listener = listener;
    }

    void onText(byte[] utf8) {
      String piece = text(utf8);
      all.append(piece);
      if (listener != null) {
        listener.onText(piece);
      }
    }
  }

  static final class LoadReceiver {
    private final LoadListener listener;

    LoadReceiver(LoadListener listener) {
      this.listener = listener;
    }

    void onProgress(long doneBytes, long totalBytes) {
      listener.onProgress(doneBytes, totalBytes);
    }

    void onNotice(byte[] utf8) {
      listener.onNotice(text(utf8));
    }
  }

  /** {@code path} null: the model is the part of {@code descriptor}; lengthBytes 0: to its end. */
  static long load(
      String path,
      int descriptor,
      long offsetBytes,
      long lengthBytes,
      ModelOptions options,
      LoadListener listener) {
    return loadModel(
        utf8(path),
        descriptor,
        offsetBytes,
        lengthBytes,
        options == null ? null : utf8(options.packFolder),
        options,
        listener == null ? null : new LoadReceiver(listener));
  }

  static MemoryPlan plan(
      String path, int descriptor, long offsetBytes, long lengthBytes, ModelOptions options) {
    MemoryPlan plan = new MemoryPlan();
    byte[] problem =
        makePlan(
            utf8(path),
            descriptor,
            offsetBytes,
            lengthBytes,
            options == null ? null : utf8(options.packFolder),
            options,
            plan,
            plan.info);
    plan.problem = problem == null ? null : text(problem);
    return plan;
  }

  static ModelInfo info(long model) {
    ModelInfo info = new ModelInfo();
    readModelInfo(model, info);
    return info;
  }

  static Reply complete(
      long model, String prompt, GenerationOptions options, TextListener listener) {
    TextReceiver receiver = new TextReceiver(listener);
    Reply reply = new Reply();
    complete(model, utf8(prompt), options, receiver, reply);
    reply.text = receiver.all.toString();
    return reply;
  }

  static long createChat(long model, String systemPrompt, GenerationOptions options) {
    return createChat(model, utf8(systemPrompt), options);
  }

  static Reply send(long chat, String message, TextListener listener) {
    TextReceiver receiver = new TextReceiver(listener);
    Reply reply = new Reply();
    send(chat, utf8(message), receiver, reply);
    reply.text = receiver.all.toString();
    return reply;
  }

  static int[] tokenize(long model, String text, boolean addSpecial, boolean parseSpecial) {
    return tokenize(model, utf8(text), addSpecial, parseSpecial);
  }

  static String textOf(long model, int[] tokens) {
    return text(detokenize(model, tokens));
  }

  static String version() {
    return text(versionUtf8());
  }

  static native void closeModel(long model);

  static native void cancel(long model);

  static native void closeChat(long chat);

  static native void setChatOptions(long chat, GenerationOptions options);

  static native void resetChat(long chat);

  static native int contextUsed(long chat);

  static native void readDefaults(GenerationOptions options);

  private static native long loadModel(
      byte[] path,
      int descriptor,
      long offsetBytes,
      long lengthBytes,
      byte[] packFolder,
      ModelOptions options,
      LoadReceiver receiver);

  private static native byte[] makePlan(
      byte[] path,
      int descriptor,
      long offsetBytes,
      long lengthBytes,
      byte[] packFolder,
      ModelOptions options,
      MemoryPlan plan,
      ModelInfo info);

  private static native void readModelInfo(long model, ModelInfo info);

  static native void complete(
      long model, byte[] prompt, GenerationOptions options, TextReceiver receiver, Reply reply);

  private static native long createChat(long model, byte[] systemPrompt, GenerationOptions options);

  private static native void send(long chat, byte[] message, TextReceiver receiver, Reply reply);

  private static native int[] tokenize(
      long model, byte[] text, boolean addSpecial, boolean parseSpecial);

  private static native byte[] detokenize(long model, int[] tokens);

  private static native byte[] versionUtf8();
}
