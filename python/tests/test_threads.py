"""Several threads with one model, stopping, and answers that end early."""

import gc
import threading
from typing import Any, Callable, List

import pytest
from conftest import ANSWER, ENDLESS, QUESTION, model_path

import cria


class Worker(threading.Thread):
    """Keeps what its function returns or raises."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__()
        self._function = function
        self.value: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self._function()
        except Exception as error:
            self.value = error


def test_eight_threads_get_their_own_texts(model: cria.Model) -> None:
    expected = [model.complete("The", seed=seed, max_tokens=30).read().text for seed in range(8)]
    assert len(set(expected)) > 4

    def ask(seed: int) -> List[str]:
        texts = []
        for _ in range(5):
            texts.append(model.complete("The", seed=seed, max_tokens=30).read().text)
            texts.append("".join(model.complete("The", seed=seed, max_tokens=30)))
            texts.append(model.chat(QUESTION, temperature=0).read().text)
        return texts

    def asker(seed: int) -> Worker:
        return Worker(lambda: ask(seed))

    workers = [asker(seed) for seed in range(8)]
    for seed, worker in enumerate(workers):
        worker.join()
        assert worker.value == [expected[seed], expected[seed], ANSWER] * 5


def test_calls_generate_at_the_same_time(model: cria.Model) -> None:
    # Each call is in its first piece while the others are in theirs, which no lock of Python's allows.
    answers = [model.complete("llama", seed=seed, **ENDLESS) for seed in range(3)]
    for answer in answers:
        assert next(answer)
    for answer in answers:
        assert next(answer)
        answer.close()
        assert answer.result is not None and answer.result.finish_reason == "cancelled"


def test_python_runs_while_the_model_does(model: cria.Model) -> None:
    begun, done = threading.Event(), threading.Event()

    def tell(*_: Any) -> None:
        begun.set()

    def ask() -> Any:
        # A call that kept Python's lock would never end, because only the other thread ends it.
        return model.complete("llama", on_prompt=tell, **ENDLESS).read().finish_reason

    worker = Worker(ask)
    begun.wait()
    while not done.is_set():
        model.cancel()
        worker.join(0.01)
        if not worker.is_alive():
            done.set()
    assert worker.value == "cancelled" or isinstance(worker.value, cria.CancelledError)


@pytest.mark.parametrize("cancel", ["answer", "chat", "model"])
def test_another_thread_stops_an_answer(model: cria.Model, cancel: str) -> None:
    with model.new_chat(QUESTION, **ENDLESS) as chat:
        answer = chat.answer()
        begun = threading.Event()

        def read() -> Any:
            next(answer)
            begun.set()
            return answer.read().finish_reason

        worker = Worker(read)
        begun.wait()
        if cancel == "model":
            # That stops only calls that are under way.
            while worker.is_alive():
                model.cancel()
                worker.join(0.01)
        else:
            (answer if cancel == "answer" else chat).cancel()
        worker.join()
        assert worker.value == "cancelled"
        chat.clear_cancel()
        chat.set_options(temperature=0)
        assert chat.regenerate().read().text == ANSWER


def test_an_answer_that_is_stopped_in_its_prompt_raises(model: cria.Model) -> None:
    answer = model.complete("a " * 400, on_prompt=lambda *_: answer.cancel())
    with pytest.raises(cria.CancelledError):
        answer.read()
    with pytest.raises(cria.CancelledError):
        answer.read()
    streamed = model.complete("a " * 400, on_prompt=lambda *_: streamed.cancel())
    with pytest.raises(cria.CancelledError):
        next(streamed)
    assert list(streamed) == []


def test_answers_that_end_early_free_their_sequence() -> None:
    with cria.Model(model_path(), num_threads=1) as model:
        # It has one sequence: a call would wait for an answer that keeps it.
        for _ in range(20):
            for _ in model.complete("llama", **ENDLESS):
                break
            with model.complete("llama", **ENDLESS) as answer:
                next(answer)
            answer.close()
            forgotten = model.chat(QUESTION, **ENDLESS)
            next(forgotten)
            del forgotten
            never_begun = model.chat(QUESTION)
            del never_begun
            gc.collect()
            assert model.complete("Hello", max_tokens=1).read().generated_tokens == 1


def test_closing_an_answer_that_never_began(model: cria.Model) -> None:
    for answer in (model.complete("Hello"), model.chat(QUESTION)):
        answer.close()
        assert list(answer) == [] and answer.text == ""
        with pytest.raises(cria.CancelledError):
            answer.read()


def test_closing_a_model_stops_its_calls() -> None:
    for _ in range(10):
        model = cria.Model(model_path(), num_threads=1, num_sequences=2)
        streamed = model.complete("llama", **ENDLESS)
        next(streamed)
        begun = threading.Event()

        def read(asked: cria.Model = model, told: threading.Event = begun) -> Any:
            # Closing waits for a call that is in its callbacks.
            return asked.complete("llama", on_prompt=lambda *_: told.set(), **ENDLESS).read().finish_reason

        worker = Worker(read)
        begun.wait()
        model.close()
        worker.join()
        assert worker.value == "cancelled" or isinstance(worker.value, cria.CancelledError)
        assert list(streamed) == []


def test_a_callback_cannot_close_its_model() -> None:
    with cria.Model(model_path(), num_threads=1) as model:
        with pytest.raises(cria.UsageError, match="in use: a callback must not close it"):
            model.complete("Hello", on_prompt=lambda *_: model.close()).read()
        assert model.complete("Hello", max_tokens=1).read().generated_tokens == 1


def test_errors_of_threads_do_not_mix(model: cria.Model) -> None:
    def fail(name: str) -> List[str]:
        found = []
        for _ in range(200):
            with pytest.raises(cria.NotFoundError) as caught:
                model.load_chat(f"/nowhere/{name}")
            found.append(str(caught.value))
        return found

    def failing(name: str) -> Worker:
        return Worker(lambda: fail(name))

    workers = {name: failing(name) for name in ("first", "second", "third")}
    for name, worker in workers.items():
        worker.join()
        assert len(worker.value) == 200 and all(f"/nowhere/{name}" in sentence for sentence in worker.value)
