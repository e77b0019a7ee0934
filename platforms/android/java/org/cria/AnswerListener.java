package org.cria;

/** A TextListener that also hears of tokens and of the prompt; exceptions end the call as there. */
public interface AnswerListener extends TextListener {
  @Override
  default void onText(String text) {}

  /**
   * Called for each token except the one that ends the answer, before its text is passed on. With
   * an AnswerListener, a token takes one exponential more for each token of the vocabulary.
   */
  default void onToken(Token token) {}

  /**
   * Called before a prompt is read, when the context holds doneTokens of its totalTokens, and after
   * each chunk.
   */
  default void onPrompt(int doneTokens, int totalTokens) {}
}
