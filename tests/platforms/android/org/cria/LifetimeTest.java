package org.cria;

import static org.cria.DemoModel.ANSWER;
import static org.cria.DemoModel.QUESTION;
import static org.cria.DemoModel.chat;
import static org.cria.DemoModel.endless;
import static org.cria.DemoModel.expectFailure;
import static org.cria.DemoModel.greedy;
import static org.cria.DemoModel.load;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.cria.CriaException.Status;
import org.cria.Reply.StopReason;
import org.junit.After;
import org.junit.Test;

/** Models and chats that are closed, cancelled and shared by threads. */
public class LifetimeTest {
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @After
  public void stopThreads() {
    threads.shutdownNow();
  }

  /** Runs {@code then} on another thread once the answer has begun. */
  private StopReason endlessAnswer(long model, long chat, Runnable then) throws Exception {
    CountDownLatch hasBegun = new CountDownLatch(1);
    Future<?> other =
        threads.submit(
            () -> {
              hasBegun.await();
              then.run();
              return null;
            });
    TextListener listener = piece -> hasBegun.countDown();
    Reply reply =
        chat == 0
            ? CriaNative.complete(model, "llama", endless(), listener)
            : CriaNative.send(chat, QUESTION, listener);
    other.get();
    return reply.getStopReason();
  }

  @Test
  public void anotherThreadCancels() throws Exception {
    long model = load();
    for (int round = 0; round < 5; ++round) {
      assertEquals(
          StopReason.CANCELLED, endlessAnswer(model, 0, () -> CriaNative.cancel(model)));
    }
    // Where nothing is under way, and where nothing is open, it does nothing.
    CriaNative.cancel(model);
    assertEquals(ANSWER, CriaNative.send(chat(model), QUESTION, null).text);
    CriaNative.closeModel(model);
    CriaNative.cancel(model);
    CriaNative.cancel(-1);
  }

  @Test
  public void aListenerCancels() {
    long model = load();
    AtomicInteger pieces = new AtomicInteger();
    Reply reply =
        CriaNative.complete(
            model,
            "llama",
            endless(),
            piece -> {
              if (pieces.incrementAndGet() == 3) {
                CriaNative.cancel(model);
              }
            });
    assertEquals(StopReason.CANCELLED, reply.getStopReason());
    CriaNative.closeModel(model);
  }

  @Test
  public void anAnswerIsGivenOnAThreadOfItsOwn() throws Exception {
    long model = load();
    Callable<String> asking =
        () -> {
          Thread own = Thread.currentThread();
          AtomicInteger others = new AtomicInteger();
          String text =
              CriaNative.send(
                      chat(model),
                      QUESTION,
                      piece -> others.addAndGet(Thread.currentThread() == own ? 0 : 1))
                  .text;
          assertEquals(0, others.get());
          return text;
        };
    assertEquals(ANSWER, threads.submit(asking).get());
    assertEquals(ANSWER, threads.submit(asking).get());
    CriaNative.closeModel(model);
  }

  @Test
  public void anotherThreadClosesTheModelThatAnswers() throws Exception {
    for (int round = 0; round < 3; ++round) {
      long model = load();
      assertEquals(
          StopReason.CANCELLED, endlessAnswer(model, 0, () -> CriaNative.closeModel(model)));
      expectFailure(Status.USAGE, "closed", () -> CriaNative.info(model));
    }
  }

  @Test
  public void anotherThreadClosesTheChatThatAnswers() throws Exception {
    long model = load();
    long chat = CriaNative.createChat(model, null, endless());
    assertEquals(
        StopReason.CANCELLED, endlessAnswer(model, chat, () -> CriaNative.closeChat(chat)));
    expectFailure(Status.USAGE, "closed", () -> CriaNative.send(chat, QUESTION, null));
    assertEquals(ANSWER, CriaNative.send(chat(model), QUESTION, null).text);
    CriaNative.closeModel(model);
  }

  @Test
  public void aListenerClosesWhatAnswers() {
    long model = load();
    long chat = chat(model);
    Reply reply = CriaNative.send(chat, QUESTION, piece -> CriaNative.closeModel(model));
    assertEquals(StopReason.CANCELLED, reply.getStopReason());
    expectFailure(Status.USAGE, "closed", () -> CriaNative.send(chat, QUESTION, null));
  }

  @Test
  public void whatIsClosedIsRefused() {
    long model = load();
    long chat = chat(model);
    CriaNative.closeChat(chat);
    CriaNative.closeChat(chat);
    expectFailure(Status.USAGE, "chat", () -> CriaNative.send(chat, QUESTION, null));
    expectFailure(Status.USAGE, "chat", () -> CriaNative.resetChat(chat));
    expectFailure(Status.USAGE, "chat", () -> CriaNative.setChatOptions(chat, greedy()));
    expectFailure(Status.USAGE, "chat", () -> CriaNative.contextUsed(chat));

    CriaNative.closeModel(model);
    CriaNative.closeModel(model);
    expectFailure(Status.USAGE, "model", () -> CriaNative.info(model));
    expectFailure(Status.USAGE, "model", () -> CriaNative.createChat(model, null, greedy()));
    expectFailure(Status.USAGE, "model", () -> CriaNative.complete(model, "a", greedy(), null));
    expectFailure(Status.USAGE, "model", () -> CriaNative.tokenize(model, "a", true, false));
    expectFailure(Status.USAGE, "model", () -> CriaNative.textOf(model, new int[] {1}));
  }

  @Test
  public void aNumberNeverComesBackAndMeansOneThing() {
    long first = load();
    CriaNative.closeModel(first);
    long second = load();
    assertNotEquals(first, second);
    long chat = chat(second);
    expectFailure(Status.USAGE, "model", () -> CriaNative.info(chat));
    expectFailure(Status.USAGE, "chat", () -> CriaNative.send(second, QUESTION, null));
    for (long number : new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
      expectFailure(Status.USAGE, "model", () -> CriaNative.info(number));
      CriaNative.closeModel(number);
      CriaNative.closeChat(number);
    }
    CriaNative.closeModel(chat);
    CriaNative.closeChat(second);
    assertEquals(ANSWER, CriaNative.send(chat, QUESTION, null).text);
    CriaNative.closeModel(second);
  }

  @Test
  public void chatsCloseWithTheirModelAlone() {
    long one = load();
    long other = load();
    long chat = chat(one);
    long otherChat = chat(other);
    CriaNative.closeModel(one);
    expectFailure(Status.USAGE, "closed", () -> CriaNative.send(chat, QUESTION, null));
    assertEquals(ANSWER, CriaNative.send(otherChat, QUESTION, null).text);
    CriaNative.closeModel(other);
  }

  @Test
  public void aSecondCallerIsRefusedMeanwhile() throws Exception {
    long model = load();
    long chat = chat(model);
    Reply reply =
        CriaNative.send(
            chat,
            QUESTION,
            piece -> {
              expectFailure(Status.USAGE, "in use", () -> CriaNative.send(chat, "Hi!", null));
              try {
                threads
                    .submit(
                        () ->
                            expectFailure(
                                Status.USAGE,
                                "in use",
                                () -> CriaNative.send(chat, "Hi!", null)))
                    .get();
              } catch (Exception exception) {
                throw new AssertionError(exception);
              }
            });
    assertEquals(ANSWER, reply.text);
    CriaNative.closeModel(model);
  }

  /** Threads that ask and close what others use: they are refused or stopped, and nothing else. */
  @Test
  public void anyOrderOfCallsIsSafe() throws Exception {
    final int rounds = 15;
    AtomicInteger answers = new AtomicInteger();
    for (int round = 0; round < rounds; ++round) {
      long model = load();
      long chat = chat(model);
      CountDownLatch start = new CountDownLatch(1);
      List<Future<?>> all = new ArrayList<>();
      int last = round;
      for (int i = 0; i < 3; ++i) {
        all.add(
            threads.submit(
                () -> {
                  start.await();
                  for (int k = 0; k < 50; ++k) {
                    try {
                      CriaNative.contextUsed(chat);
                      CriaNative.tokenize(model, "a baby llama", true, false);
                      CriaNative.send(chat, QUESTION, null);
                      answers.incrementAndGet();
                    } catch (CriaException exception) {
                      // In use, closed, or closed while the message was read.
                      assertTrue(
                          exception.getMessage(),
                          exception.getStatus() == Status.USAGE
                              || exception.getStatus() == Status.CANCELLED);
                    }
                  }
                  return null;
                }));
      }
      all.add(
          threads.submit(
              () -> {
                start.await();
                Thread.sleep(last);
                CriaNative.closeChat(last % 2 == 0 ? chat : 0);
                CriaNative.closeModel(model);
                return null;
              }));
      start.countDown();
      for (Future<?> one : all) {
        one.get();
      }
    }
    assertTrue(answers.get() > 0);
  }
}
