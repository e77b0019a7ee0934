package org.cria;

import java.util.ArrayList;
import java.util.List;

/**
 * The memory that a model would take, from its metadata: resident bytes of the process after a
 * conversation has filled the context, without the Java machine's own memory.
 */
public final class MemoryPlan {
  /** "KV cache", "packed weights" and so on. */
  public static final class Part {
    public final String name;
    public final long bytes;

    /** Of a file: the system may drop its pages and read them again. */
    public final boolean isMapped;

    Part(String name, long bytes, boolean isMapped) {
      this.name = name;
      this.bytes = bytes;
      this.isMapped = isMapped;
    }
  }

  public final List<Part> parts = new ArrayList<>();
  public final ModelInfo info = new ModelInfo();

  /** The kernel cannot drop them. */
  public long privateBytes;

  /** Of files: the system may drop them and read them again. */
  public long mappedBytes;

  /** The maximum, loading included; compared with the limits. */
  public long peakBytes;

  public long addressSpaceBytes;

  /** Why the limits do not allow it, and what would fit; null if they do. */
  public String problem;

  MemoryPlan() {}

  // Called by the native library.
  void addPart(byte[] utf8, long bytes, boolean isMapped) {
    parts.add(new Part(CriaNative.text(utf8), bytes, isMapped));
  }
}
