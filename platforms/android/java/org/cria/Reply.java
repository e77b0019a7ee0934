package org.cria;

/** Text, and how it came about. */
public final class Reply {
  /** Why an answer ended; in the order of {@code CRIA_STOP_...}. */
  public enum StopReason {
    /** The model ended it. */
    END,
    /** As many tokens as were asked for. */
    MAX_TOKENS,
    /** The context has no place for another token. */
    CONTEXT_FULL,
    /** Cancelled or closed; what was said is kept. */
    CANCELLED
  }

  public String text = "";

  /** From the call to the first text; 0 where there was none. */
  public double firstTextSeconds;

  public double totalSeconds;

  /** Of reading the prompt; 0 where nothing had to be read. */
  public double promptTokensPerSecond;

  /** Of the model alone, neither sampling nor the listener. */
  public double generatedTokensPerSecond;

  /** Read. */
  public int promptTokens;

  /** Of the prompt, those that the context held already. */
  public int reusedTokens;

  public int generatedTokens;

  /** To make room, where the context was full. */
  public int droppedTokens;

  /** Of the KV cache's, with this text in it. */
  public int contextUsedTokens;

  private int stopCode;

  Reply() {}

  public StopReason getStopReason() {
    return StopReason.values()[stopCode];
  }
}
