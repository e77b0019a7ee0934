package org.cria;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * How tokens are chosen, and where the text ends. A new object has the defaults of llama.cpp, and
 * its order of steps: bias, penalties, DRY, topK, typicalP, topP, minP, XTC, temperature.
 */
public final class GenerationOptions {
  /** What happens to a text that becomes longer than the context. */
  public enum WhenFull {
    /** The text ends there. */
    STOP,
    /**
     * The oldest part is dropped and the text goes on. A chat drops whole turns but never its
     * system prompt; a completion drops the older half of the tokens after its first keepTokens.
     */
    SHIFT
  }

  /** What an answer must match. */
  public enum ConstraintKind {
    NONE,
    /** JSON that is valid by a JSON Schema (draft 2020-12). */
    JSON_SCHEMA,
    /** Any JSON value; the constraint is empty. */
    JSON,
    /** Any JSON object; the constraint is empty. */
    JSON_OBJECT,
    /** The rule "root" of a grammar in llama.cpp's notation, GBNF. */
    GRAMMAR,
    /** A regular expression of JavaScript, from begin to end. */
    REGEX
  }

  /** The same seed, model and texts give the same answers. */
  public long seed;

  /** Maximum for one answer; 0: until the model ends it. */
  public int maxTokens;

  public WhenFull whenFull = WhenFull.STOP;

  /** 0: always the most likely token. */
  public float temperature;

  /** Choose among the k most likely tokens; 0: all. */
  public int topK;

  /** Choose among the most likely tokens whose probabilities reach p; 1: all. */
  public float topP;

  /** Choose among tokens at least p times as likely as the first; 0: all. */
  public float minP;

  /** Makes recent tokens less likely; 1: off. */
  public float repeatPenalty;

  /** How many tokens count as recent; Integer.MAX_VALUE: the whole context. */
  public int repeatLastN;

  /** Subtracted from the logits of recent tokens; 0: off. */
  public float presencePenalty;

  /** Subtracted once for each time that a token is recent; 0: off. */
  public float frequencyPenalty;

  /**
   * Choose among the tokens whose information is nearest to the entropy, and whose probabilities
   * reach p; 0 or 1: all.
   */
  public float typicalP;

  /**
   * XTC: with this probability, excludes all tokens at least as likely as the threshold but the
   * least likely of them; 0: off.
   */
  public float xtcProbability;

  /** 0: 0.1. */
  public float xtcThreshold;

  /**
   * DRY: a token that makes a repetition of n tokens longer, where n is at least dryAllowedLength,
   * has dryMultiplier times dryBase to the power of n - dryAllowedLength subtracted from its logit;
   * 0: off. Repetitions end at line ends, colons, quotation marks and asterisks.
   */
  public float dryMultiplier;

  /** 0: 1.75. */
  public float dryBase;

  /** 0: 2. */
  public int dryAllowedLength;

  /** How many tokens are searched for repetitions; 0: the whole context. */
  public int dryPenaltyLastN;

  /** First tokens that a completion keeps with WhenFull.SHIFT. */
  public int keepTokens;

  /**
   * Read &lt;|eot_id|&gt; and the like in the prompt of a completion as the tokens that they name.
   * Do not set it for text from others.
   */
  public boolean parseSpecial;

  /**
   * The answer ends before the first of these strings. What may be the beginning of one is held
   * back until that is certain. Control tokens have no text and are not found.
   */
  public List<String> stop = new ArrayList<>();

  /**
   * What is added to the logits of tokens: at most 1e6; Float.NEGATIVE_INFINITY forbids a token.
   */
  public Map<Integer, Float> logitBias = new LinkedHashMap<>();

  /**
   * What each answer must match. It holds from the first token, so that a model that reasons before
   * its answers does not. If the text must end within maxTokens or the context, it is led to an end
   * that matches. The model must have been opened with {@link ModelOptions#maxConstraints}. A
   * constraint that is wrong or not supported is an error of the call that generates.
   */
  public ConstraintKind constraintKind = ConstraintKind.NONE;

  /** The schema, grammar or regular expression of constraintKind. */
  public String constraint = "";

  public GenerationOptions() {
    CriaNative.readDefaults(this);
  }

  // The rest is called by the native library.
  byte[][] stopUtf8() {
    return CriaNative.utf8(CriaNative.notNull(stop, "stop"));
  }

  byte[] constraintUtf8() {
    return CriaNative.utf8(CriaNative.notNull(constraint, "constraint"));
  }

  int[] biasTokens() {
    int[] tokens = new int[CriaNative.notNull(logitBias, "logitBias").size()];
    int i = 0;
    for (Integer token : logitBias.keySet()) {
      tokens[i++] = CriaNative.notNull(token, "a token of logitBias");
    }
    return tokens;
  }

  float[] biasAddends() {
    float[] addends = new float[logitBias.size()];
    int i = 0;
    for (Float addend : logitBias.values()) {
      addends[i++] = CriaNative.notNull(addend, "an addend of logitBias");
    }
    return addends;
  }
}
