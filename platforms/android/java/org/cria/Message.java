package org.cria;

import java.util.Objects;

/** A message of a conversation. */
public final class Message {
  /** "system", "user", "assistant", or another that the chat template knows. */
  public final String role;

  public final String content;

  public Message(String role, String content) {
    this.role = role;
    this.content = content;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Message
        && Objects.equals(role, ((Message) other).role)
        && Objects.equals(content, ((Message) other).content);
  }

  @Override
  public int hashCode() {
    return Objects.hash(role, content);
  }

  @Override
  public String toString() {
    return role + ": " + content;
  }
}
