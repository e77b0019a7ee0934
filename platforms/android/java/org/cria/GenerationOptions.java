package org.cria;

/**
 * How tokens are chosen. A new object has the defaults of llama.cpp, and its order of steps:
 * penalty, topK, topP, minP, temperature.
 */
public final class GenerationOptions {
  /** What becomes of a text that outgrows the context. */
  public enum WhenFull {
    /** It ends there. */
    STOP,
    /**
     * Its oldest part is dropped and it goes on. A chat forgets whole turns but never its system
     * prompt; a completion drops the older half of what lies behind its first keepTokens.
     */
    SHIFT
  }

  /** The same seed, model and texts give the same answers. */
  public long seed;

  /** Of one answer; 0: until the model ends it. */
  public int maxTokens;

  public WhenFull whenFull = WhenFull.STOP;

  /** 0: always the most likely token. */
  public float temperature;

  /** Among the k most likely; 0: all. */
  public int topK;

  /** Among the most likely that together reach p; 1: all. */
  public float topP;

  /** Those at least p times as likely as the most likely; 0: all. */
  public float minP;

  /** Makes recent tokens less likely; 1: does not. */
  public float repeatPenalty;

  /** How many tokens count as recent. */
  public int repeatLastN;

  /** For completions with WhenFull.SHIFT. */
  public int keepTokens;

  /**
   * Take &lt;|eot_id|&gt; and the like in the prompt of a completion for the tokens that they name.
   * Never for text that comes from somebody else.
   */
  public boolean parseSpecial;

  public GenerationOptions() {
    CriaNative.readDefaults(this);
  }
}
