package org.cria;

/** What went wrong, where, and what to do about it. */
public final class CriaException extends RuntimeException {
  /** What kind of error it is; in the order of {@code cria_status}. */
  public enum Status {
    OK,
    /** An argument is wrong, or this call is not allowed now. */
    USAGE,
    /** The file is damaged, truncated or not a model. */
    INVALID_FILE,
    /** The file is for another version or processor. */
    UNSUPPORTED,
    NOT_FOUND,
    IO,
    /** There is too little memory, or a limit forbids it. */
    OUT_OF_MEMORY,
    /** A text is too long for the context. */
    OUT_OF_RANGE,
    /** Stopped before there was an answer. */
    CANCELLED,
    /** A bug in Cria or in a library that it uses. */
    INTERNAL
  }

  private static final long serialVersionUID = 1;

  private final Status status;

  // Created by the native library.
  CriaException(int status, byte[] message) {
    super(CriaNative.text(message));
    Status[] all = Status.values();
    this.status = status >= 0 && status < all.length ? all[status] : Status.INTERNAL;
  }

  public Status getStatus() {
    return status;
  }
}
