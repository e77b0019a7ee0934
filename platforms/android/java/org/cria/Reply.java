package org.cria;

/** The text of an answer, and its figures. */
public final class Reply {
  /** Why an answer ended; in the order of {@code CRIA_STOP_...}. */
  public enum StopReason {
    /** The model ended it. */
    END,
    /** maxTokens were generated. */
    MAX_TOKENS,
    /** The context is full. */
    CONTEXT_FULL,
    /** Cancelled or closed; the text so far is kept. */
    CANCELLED,
    /** A string of GenerationOptions.stop follows. */
    STOP_STRING
  }

  public String text = "";

  /** From the call to the first text; 0 if there was none. */
  public double firstTextSeconds;

  public double totalSeconds;

  /** Speed of reading the prompt; 0 if nothing was read. */
  public double promptTokensPerSecond;

  /** Of the model, without sampling and the listener. */
  public double generatedTokensPerSecond;

  /** Tokens of the prompt that were read. */
  public int promptTokens;

  /** Tokens of the prompt that the context already held. */
  public int reusedTokens;

  public int generatedTokens;

  /** Dropped to make room in a full context. */
  public int droppedTokens;

  /** In the KV cache after the call. */
  public int contextUsedTokens;

  /** About how many times as fast guesses made generating; 1 without them. */
  public double draftGain;

  /** Guessed tokens that the model checked. */
  public int draftedTokens;

  /** Guessed tokens that were right. */
  public int acceptedTokens;

  private int stopCode;

  Reply() {}

  public StopReason getStopReason() {
    return StopReason.values()[stopCode];
  }
}
