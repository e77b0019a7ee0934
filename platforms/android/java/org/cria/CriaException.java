package org.cria;

/** What went wrong, where, and what to do about it. */
public final class CriaException extends RuntimeException {
  /** Who can mend it; in the order of {@code cria_status}. */
  public enum Status {
    OK,
    /** An argument, or an order of calls, that cannot be. */
    USAGE,
    /** The model file is damaged, cut short or none. */
    INVALID_FILE,
    /** It is sound but for another version or processor. */
    UNSUPPORTED,
    NOT_FOUND,
    IO,
    /** Memory could not be had, or would exceed a limit. */
    OUT_OF_MEMORY,
    /** A text that the context does not hold. */
    OUT_OF_RANGE,
    /** Stopped before there was an answer. */
    CANCELLED,
    /** A bug in Cria or below it. */
    INTERNAL
  }

  private static final long serialVersionUID = 1;

  private final Status status;

  // Made by the native library.
  CriaException(int status, byte[] message) {
    super(CriaNative.text(message));
    Status[] all = Status.values();
    this.status = status >= 0 && status < all.length ? all[status] : Status.INTERNAL;
  }

  public Status getStatus() {
    return status;
  }
}
