package org.cria;

/** What a model is, and how it is loaded. */
public final class ModelInfo {
  public String name = "";

  /** A tied output head is counted once. */
  public long numParameters;

  public long fileBytes;
  public int vocabSize;

  /** The context that the model was made for. */
  public int maxContextTokens;

  /** Size of the KV cache. */
  public int contextTokens;

  public int numThreads;
  public int numBatchThreads;

  /** False: it continues the text instead of answering. */
  public boolean hasChatTemplate;

  ModelInfo() {}

  // Called by the native library.
  void setName(byte[] utf8) {
    name = CriaNative.text(utf8);
  }
}
