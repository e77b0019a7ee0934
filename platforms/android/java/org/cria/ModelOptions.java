package org.cria;

/** How a model is loaded. A number left at 0 takes its default. */
public final class ModelOptions {
  /**
   * The type of keys and values in the KV cache; a value takes 4, 2 or about 1 bytes. MODEL is INT8,
   * or F16 if the model file says that INT8 would change its predictions too much.
   */
  public enum KvType {
    F32,
    F16,
    INT8,
    MODEL
  }

  /** What to do if a model's weights are not packed for this processor yet. */
  public enum Packing {
    /** Pack, which takes seconds for each GB, and keep them. */
    ON_FIRST_USE,
    /** Fail with NOT_FOUND. */
    NEVER
  }

  /**
   * A folder of the app for packed weights, which take as many bytes as the model: {@code
   * context.noBackupFilesDir}. Null: every start packs into private memory.
   */
  public String packFolder;

  /** Size of the KV cache; 0: 2048, or the model's own if less. */
  public int contextTokens;

  public KvType kvType = KvType.MODEL;

  /** For generating; 0: one for each fast core. */
  public int numThreads;

  /** For reading prompts; 0: as many as numThreads. */
  public int numBatchThreads;

  /** Tokens of a prompt that are read at once; 0: 128. */
  public int chunkTokens;

  /**
   * How many chats and completions run at the same time; 0: one. They share the context, and more
   * calls wait for their turn.
   */
  public int numSequences;

  /**
   * A much smaller model file with the same vocabulary, which guesses the next tokens for the model
   * to check. Guesses change no text, only the time that it takes. Null: none.
   */
  public String draftModelPath;

  /** Guesses are what followed the last so many tokens earlier in the text; 0: none of these. */
  public int draftNgramTokens;

  /** How many tokens are guessed at most; 0: 8. */
  public int maxDraftTokens;

  /** How many tokens are guessed even if that is not expected to pay. */
  public int minDraftTokens;

  /**
   * Guess with the model's own layer for multi-token prediction. Loading fails if the model has
   * none, or if there is a draft model, too.
   */
  public boolean draftMtp;

  /** Other guesses end before a token that their source gives a smaller probability. */
  public float minDraftProbability;

  /**
   * How many calls with a {@link GenerationOptions#constraint} may run at the same time; 0: none.
   * Each takes memory, which is part of the plan.
   */
  public long maxConstraints;

  /**
   * From 5 °C below this temperature of the processor on, fewer threads compute, and they pause
   * between tokens; 0: no limit. This changes no text. Most phones do not tell apps the temperature:
   * there, the limit has no effect, and the listener of loading is told.
   */
  public double maxTemperatureCelsius;

  /** Loading fails above it; 0: only the system's limits hold. */
  public long memoryLimitBytes;

  /** Load the model even if it exceeds a limit. */
  public boolean ignoreMemoryLimits;

  public Packing packing = Packing.ON_FIRST_USE;

  // Called by the native library.
  byte[] draftModelUtf8() {
    return CriaNative.utf8(draftModelPath);
  }
}
