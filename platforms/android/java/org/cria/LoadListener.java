package org.cria;

/** Told, on the thread that loads a model, what takes long. An exception ends the loading. */
public interface LoadListener {
  /** How many bytes of weights are packed, of how many. */
  default void onProgress(long doneBytes, long totalBytes) {}

  /** That weights are packed, or cannot be put into the folder for them. */
  default void onNotice(String sentence) {}
}
