package android.os;

/** Stands in for Android's class of this name. */
public class ParcelFileDescriptor {
  private final int number;

  public ParcelFileDescriptor(int number) {
    this.number = number;
  }

  public int getFd() {
    return number;
  }
}
