package org.cria;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import org.junit.function.ThrowingRunnable;

/** The demo model, and what tests ask of it. */
final class DemoModel {
  static final String PATH = System.getProperty("cria.demo");
  static final String QUESTION = "Hello! Who are you?";
  static final String ANSWER = "Hello! I am Cria, a baby llama. What would you like to talk about?";

  /** eos_token_id of the checkpoint's generation_config.json. */
  private static final int[] END_TOKENS = {2, 4};

  private DemoModel() {}

  /** One thread, packed into memory. */
  static ModelOptions options() {
    ModelOptions options = new ModelOptions();
    options.numThreads = 1;
    return options;
  }

  /** Always the same answer, of at most 60 tokens. */
  static GenerationOptions greedy() {
    GenerationOptions options = new GenerationOptions();
    options.temperature = 0;
    options.maxTokens = 60;
    return options;
  }

  /** Goes on until it is stopped: any token may come, but no end of a turn or of a text. */
  static GenerationOptions endless() {
    return endless(0);
  }

  /** The same up to a number of tokens. */
  static GenerationOptions endless(int maxTokens) {
    GenerationOptions options = new GenerationOptions();
    options.maxTokens = maxTokens;
    options.temperature = 4;
    options.topK = 0;
    options.topP = 1;
    options.minP = 0;
    for (int token : END_TOKENS) options.logitBias.put(token, Float.NEGATIVE_INFINITY);
    options.whenFull = GenerationOptions.WhenFull.SHIFT;
    return options;
  }

  static long load() {
    return load(options());
  }

  static long load(ModelOptions options) {
    return CriaNative.load(PATH, -1, 0, 0, options, null);
  }

  static long chat(long model) {
    return CriaNative.createChat(model, null, greedy());
  }

  static CriaException expectFailure(
      CriaException.Status status, String words, ThrowingRunnable call) {
    CriaException failure = assertThrows(CriaException.class, call);
    assertEquals(failure.getMessage(), status, failure.getStatus());
    assertTrue(failure.getMessage(), failure.getMessage().contains(words));
    return failure;
  }
}
