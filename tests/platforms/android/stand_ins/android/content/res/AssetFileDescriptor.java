package android.content.res;

import android.os.ParcelFileDescriptor;

/** Stands in for Android's class of this name. */
public class AssetFileDescriptor {
  public static final long UNKNOWN_LENGTH = -1;

  private final ParcelFileDescriptor file;
  private final long startOffset;
  private final long length;

  public AssetFileDescriptor(ParcelFileDescriptor file, long startOffset, long length) {
    this.file = file;
    this.startOffset = startOffset;
    this.length = length;
  }

  public ParcelFileDescriptor getParcelFileDescriptor() {
    return file;
  }

  public long getStartOffset() {
    return startOffset;
  }

  public long getDeclaredLength() {
    return length;
  }
}
