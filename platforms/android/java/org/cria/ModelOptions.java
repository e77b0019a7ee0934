package org.cria;

/** How a model is loaded. A number left at 0 takes its default. */
public final class ModelOptions {
  /** How keys and values lie in the KV cache: 4, 2 or about 1 bytes each. */
  public enum KvType {
    F32,
    F16,
    INT8
  }

  /** What to do with a model whose weights are not yet packed for this processor. */
  public enum Packing {
    /** Pack, which takes seconds for each GB, and keep the result. */
    ON_FIRST_USE,
    /** Fail with NOT_FOUND. */
    NEVER
  }

  /**
   * A folder of the app for packed weights, which take as many bytes as the model: {@code
   * context.noBackupFilesDir}. Null: every start packs, into memory.
   */
  public String packFolder;

  /** Tokens of the KV cache; 0: 2048, or the model's own where that is less. */
  public int contextTokens;

  public KvType kvType = KvType.F32;

  /** For one token after another; 0: one for each fast core. */
  public int numThreads;

  /** For reading prompts; 0: as many as numThreads. */
  public int numBatchThreads;

  /** Of a prompt that go through the model at once; 0: 128. */
  public int chunkTokens;

  /** Fail where more would be taken; 0: the system's limits alone. */
  public long memoryLimitBytes;

  /** Load what exceeds limits all the same. */
  public boolean ignoreMemoryLimits;

  public Packing packing = Packing.ON_FIRST_USE;
}
