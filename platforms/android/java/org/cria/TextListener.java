package org.cria;

/** Receives an answer while it is generated; an AnswerListener receives more. */
public interface TextListener {
  /**
   * Called on the thread that waits for the answer, with whole characters. An exception ends the
   * answer and is thrown by the waiting call; the text so far is kept in the chat.
   */
  void onText(String text);
}
