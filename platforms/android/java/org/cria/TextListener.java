package org.cria;

/** Takes an answer as it comes. */
public interface TextListener {
  /**
   * Called on the thread that waits for the answer, with whole characters. An exception ends the
   * answer and comes out of the call that waits; what was said until then is kept in the chat.
   */
  void onText(String text);
}
