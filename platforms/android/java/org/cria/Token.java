package org.cria;

/** A token of an answer. */
public final class Token {
  public final int id;

  /** 0 for the first token of the answer. */
  public final int index;

  /**
   * The text that is complete with this token: whole characters, perhaps none. Stop strings are not
   * removed from it.
   */
  public final String text;

  /**
   * The natural logarithm of the probability that the model gives the token, before the steps of
   * GenerationOptions.
   */
  public final double logProbability;

  Token(int id, int index, String text, double logProbability) {
    this.id = id;
    this.index = index;
    this.text = text;
    this.logProbability = logProbability;
  }
}
