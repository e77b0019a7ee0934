package org.cria;

/** Called on the thread that loads a model. An exception ends the loading. */
public interface LoadListener {
  /** Called while weights are packed. */
  default void onProgress(long doneBytes, long totalBytes) {}

  /** Called when weights are packed, or if they cannot be written to their folder. */
  default void onNotice(String sentence) {}
}
