package org.cria;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The native methods, and the conversion of texts for them. Only the classes of this package use
 * them: apps use Model and Chat.
 *
 * <p>A model or a chat is a number. A number that is not open is refused with a
 * CriaException. Any thread may call; only one at a time may use a chat.
 */
final class CriaNative {
  static {
    System.loadLibrary("cria_jni");
  }

  private CriaNative() {}

  // Strings are passed as UTF-8 bytes, because JNI's own encoding differs above U+FFFF.
  static byte[] utf8(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  static byte[][] utf8(List<String> texts) {
    byte[][] all = new byte[texts.size()][];
    for (int i = 0; i < all.length; ++i) {
      all[i] = utf8(texts.get(i));
    }
    return all;
  }

  // Roles and contents by turns.
  private static byte[][] utf8OfMessages(List<Message> messages) {
    List<String> texts = new ArrayList<>();
    for (Message message : notNull(messages, "messages")) {
      texts.add(notNull(message, "a message").role);
      texts.add(message.content);
    }
    return utf8(texts);
  }

  static <T> T notNull(T value, String name) {
    if (value == null) {
      throw new CriaException(CriaException.Status.USAGE.ordinal(), utf8(name + " is null"));
    }
    return value;
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

    boolean hearsTokens() {
      return listener instanceof AnswerListener;
    }

    void onToken(int id, int index, double logProbability, byte[] utf8) {
      ((AnswerListener) listener).onToken(new Token(id, index, text(utf8), logProbability));
    }

    void onPrompt(int doneTokens, int totalTokens) {
      if (listener instanceof AnswerListener) {
        ((AnswerListener) listener).onPrompt(doneTokens, totalTokens);
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
    List<Message> messages = new ArrayList<>();
    if (systemPrompt != null && !systemPrompt.isEmpty()) {
      messages.add(new Message("system", systemPrompt));
    }
    return createChatFrom(model, messages, options);
  }

  static long createChatFrom(long model, List<Message> messages, GenerationOptions options) {
    return createChat(model, utf8OfMessages(messages), options);
  }

  /** A chat, and whether its first answer need not read the messages again. */
  static final class LoadedChat {
    final long chat;
    final boolean isContextRestored;

    LoadedChat(long chat, boolean isContextRestored) {
      this.chat = chat;
      this.isContextRestored = isContextRestored;
    }
  }

  static LoadedChat loadChat(long model, String path, GenerationOptions options) {
    boolean[] isContextRestored = new boolean[1];
    long chat = loadChat(model, utf8(path), options, isContextRestored);
    return new LoadedChat(chat, isContextRestored[0]);
  }

  static void saveChat(long chat, String path) {
    saveChat(chat, utf8(path));
  }

  static Reply send(long chat, String message, TextListener listener) {
    return send(chat, new Message("user", message), listener);
  }

  static Reply send(long chat, Message message, TextListener listener) {
    notNull(message, "message");
    TextReceiver receiver = new TextReceiver(listener);
    Reply reply = new Reply();
    send(chat, utf8(message.role), utf8(message.content), receiver, reply);
    reply.text = receiver.all.toString();
    return reply;
  }

  /** Answers the last message, or replaces the last answer. */
  static Reply answer(long chat, boolean again, TextListener listener) {
    TextReceiver receiver = new TextReceiver(listener);
    Reply reply = new Reply();
    answer(chat, again, receiver, reply);
    reply.text = receiver.all.toString();
    return reply;
  }

  static List<Message> messages(long chat) {
    byte[][] texts = readMessages(chat);
    List<Message> messages = new ArrayList<>();
    for (int i = 0; i + 1 < texts.length; i += 2) {
      messages.add(new Message(text(texts[i]), text(texts[i + 1])));
    }
    return messages;
  }

  static void setVariables(long chat, String json) {
    setVariables(chat, utf8(json));
  }

  static String render(
      long model, List<Message> messages, String variables, boolean addGenerationPrompt) {
    return text(
        renderMessages(model, utf8OfMessages(messages), utf8(variables), addGenerationPrompt));
  }

  static float[] logits(long model, String prompt, boolean parseSpecial, TextListener listener) {
    return readLogits(model, utf8(prompt), parseSpecial, new TextReceiver(listener));
  }

  static float[] chatLogits(long chat, TextListener listener) {
    return readChatLogits(chat, new TextReceiver(listener));
  }

  static float[] embed(long model, String text, TextListener listener) {
    return embed(model, utf8(text), new TextReceiver(listener));
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

  static native void dropLastTurn(long chat);

  static native void cancelChat(long chat);

  static native void clearCancelOfChat(long chat);

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

  private static native long createChat(
      long model, byte[][] rolesAndContents, GenerationOptions options);

  private static native long loadChat(
      long model, byte[] path, GenerationOptions options, boolean[] isContextRestored);

  private static native void saveChat(long chat, byte[] path);

  private static native void send(
      long chat, byte[] role, byte[] content, TextReceiver receiver, Reply reply);

  private static native void answer(
      long chat, boolean again, TextReceiver receiver, Reply reply);

  private static native byte[][] readMessages(long chat);

  private static native void setVariables(long chat, byte[] json);

  private static native byte[] renderMessages(
      long model, byte[][] rolesAndContents, byte[] variables, boolean addGenerationPrompt);

  private static native float[] readLogits(
      long model, byte[] prompt, boolean parseSpecial, TextReceiver receiver);

  private static native float[] embed(long model, byte[] text, TextReceiver receiver);

  private static native float[] readChatLogits(long chat, TextReceiver receiver);

  private static native int[] tokenize(
      long model, byte[] text, boolean addSpecial, boolean parseSpecial);

  private static native byte[] detokenize(long model, int[] tokens);

  private static native byte[] versionUtf8();
}
