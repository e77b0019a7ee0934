package org.cria

import android.content.res.AssetFileDescriptor
import android.os.ParcelFileDescriptor
import java.io.File
import java.io.FileInputStream
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** That the Kotlin classes pass on what they are told: the rest is tested below them. */
class CriaKotlinTest {
    private val question = DemoModel.QUESTION
    private val answer = DemoModel.ANSWER
    private val greedy = DemoModel.greedy()

    private fun numberOf(file: FileInputStream): Int {
        val number = java.io.FileDescriptor::class.java.getDeclaredField("fd")
        number.isAccessible = true
        return number.getInt(file.fd)
    }

    private fun expectAnswer(model: Model) =
        assertEquals(answer, model.chat(options = greedy).send(question).text)

    @Test
    fun aModelFromAPathChats() {
        Model.open(DemoModel.PATH, ModelOptions().apply { numThreads = 1 }).use { model ->
            assertEquals("cria-demo", model.info.name)
            assertEquals(1, model.info.numThreads)
            val pieces = StringBuilder()
            model.chat("", greedy).use { chat ->
                val reply = chat.send(question) { pieces.append(it) }
                assertEquals(answer, reply.text)
                assertEquals(answer, pieces.toString())
                assertEquals(Reply.StopReason.END, reply.stopReason)
                assertEquals(reply.contextUsedTokens, chat.contextUsed)
                chat.reset()
                assertEquals(0, chat.contextUsed)
                chat.setOptions(DemoModel.greedy().apply { maxTokens = 2 })
                assertEquals(Reply.StopReason.MAX_TOKENS, chat.send(question).stopReason)
            }
            model.chat(listOf(Message("user", question)), greedy).use { chat ->
                assertEquals(answer, chat.answer().text)
                assertEquals(answer, chat.regenerate().text)
                assertEquals(Message("assistant", answer), chat.messages.last())
                chat.send(Message("tool", "42"))
                assertEquals(1536, chat.logits().size)
                val file = File.createTempFile("chat", ".session")
                chat.save(file.path)
                model.loadChat(file.path, greedy).use { loaded ->
                    assertTrue(loaded.isContextRestored)
                    assertEquals(chat.messages, loaded.messages)
                }
                file.delete()
                chat.dropLastTurn()
                assertTrue(chat.messages.isEmpty())
                chat.setVariables("{}")
                chat.cancel()
                assertThrows(CriaException::class.java) { chat.send(question) }
                chat.clearCancel()
                chat.setOptions(DemoModel.greedy().apply { stop.add(" a baby") })
                assertEquals(Reply.StopReason.STOP_STRING, chat.send(question).stopReason)
            }
            assertEquals(
                "<|im_start|>user\na<|im_end|>\n",
                model.render(listOf(Message("user", "a")), addGenerationPrompt = false),
            )
            assertEquals(1536, model.logits("a").size)
            assertEquals(model.embed("a").size, model.embed("b").size)
            val tokens = model.tokenize("a \uD83E\uDD99", addSpecial = false)
            assertEquals("a \uD83E\uDD99", model.detokenize(tokens))
            assertTrue(model.tokenize("a").size > model.tokenize("a", addSpecial = false).size)
            val reply = model.complete("llama", DemoModel.endless()) { model.cancel() }
            assertEquals(Reply.StopReason.CANCELLED, reply.stopReason)
            assertTrue(Model.version.isNotEmpty())
        }
    }

    @Test
    fun aModelFromADescriptorChats() {
        FileInputStream(DemoModel.PATH).use { file ->
            val descriptor = ParcelFileDescriptor(numberOf(file))
            assertEquals("cria-demo", Model.plan(descriptor).info.name)
            Model.open(descriptor).use { expectAnswer(it) }
        }
    }

    @Test
    fun aModelFromAnAssetChats() {
        val apk = File.createTempFile("app", ".apk")
        val bytes = File(DemoModel.PATH).readBytes()
        for (length in listOf(bytes.size.toLong(), AssetFileDescriptor.UNKNOWN_LENGTH)) {
            apk.writeBytes(ByteArray(100) + bytes)
            FileInputStream(apk).use { file ->
                val asset = AssetFileDescriptor(ParcelFileDescriptor(numberOf(file)), 100, length)
                assertNull(Model.plan(asset).problem)
                Model.open(asset).use { expectAnswer(it) }
            }
        }
        apk.delete()
    }

    @Test
    fun whatIsClosedOrWrongIsRefused() {
        val model = Model.open(DemoModel.PATH)
        val chat = model.chat()
        model.close()
        model.close()
        chat.close()
        val closed = assertThrows(CriaException::class.java) { chat.send(question) }
        assertEquals(CriaException.Status.USAGE, closed.status)
        val missing = assertThrows(CriaException::class.java) { Model.open("/nowhere.cria") }
        assertEquals(CriaException.Status.NOT_FOUND, missing.status)
        val small = ModelOptions().apply { memoryLimitBytes = 1_000_000 }
        assertTrue(Model.plan(DemoModel.PATH, small).problem.contains("KV cache"))
    }
}
