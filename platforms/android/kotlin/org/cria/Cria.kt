package org.cria

import android.content.res.AssetFileDescriptor
import android.os.ParcelFileDescriptor

/**
 * A language model with one context. Opening one and generating take time: do not call them on
 * the main thread. Any thread may call; calls that generate run at the same time, as many as
 * numSequences of the options, and others wait. Only one call at a time may use a chat: a second
 * one gets a [CriaException] of status USAGE. [close] frees the memory, which the garbage
 * collector does not free.
 */
class Model private constructor(private val number: Long) : AutoCloseable {
    val info: ModelInfo get() = CriaNative.info(number)

    /**
     * A conversation. A model may have several, which share its context and take turns: after
     * another was used, a chat's messages are read again from the first difference on.
     */
    @JvmOverloads
    fun chat(systemPrompt: String = "", options: GenerationOptions = GenerationOptions()): Chat =
        Chat(CriaNative.createChat(number, systemPrompt, options))

    /** A conversation that goes on from these messages. */
    @JvmOverloads
    fun chat(messages: List<Message>, options: GenerationOptions = GenerationOptions()): Chat =
        Chat(CriaNative.createChatFrom(number, messages, options))

    /**
     * A conversation that goes on where [Chat.save] left it, if possible without reading its
     * messages again: [Chat.isContextRestored].
     */
    @JvmOverloads
    fun loadChat(path: String, options: GenerationOptions = GenerationOptions()): Chat {
        val loaded = CriaNative.loadChat(number, path, options)
        return Chat(loaded.chat, loaded.isContextRestored)
    }

    /**
     * What the chat template makes of messages, without running the model. [variables] is a JSON
     * object or "".
     */
    @JvmOverloads
    fun render(
        messages: List<Message>,
        addGenerationPrompt: Boolean = true,
        variables: String = "",
    ): String = CriaNative.render(number, messages, variables, addGenerationPrompt)

    /** The logits of the token after the prompt, one for each token of the vocabulary. */
    @JvmOverloads
    fun logits(
        prompt: String,
        parseSpecial: Boolean = false,
        listener: TextListener? = null,
    ): FloatArray = CriaNative.logits(number, prompt, parseSpecial, listener)

    /**
     * The embedding of a text, for searching by meaning: as many numbers as the hidden size, with
     * a Euclidean norm of 1. The text must fit the context.
     */
    @JvmOverloads
    fun embed(text: String, listener: TextListener? = null): FloatArray =
        CriaNative.embed(number, text, listener)

    /** Continues a text. */
    @JvmOverloads
    fun complete(
        prompt: String,
        options: GenerationOptions = GenerationOptions(),
        listener: TextListener? = null,
    ): Reply = CriaNative.complete(number, prompt, options, listener)

    /** Stops a running answer. Any thread, also in a listener. */
    fun cancel() = CriaNative.cancel(number)

    @JvmOverloads
    fun tokenize(
        text: String,
        addSpecial: Boolean = true,
        parseSpecial: Boolean = false,
    ): IntArray = CriaNative.tokenize(number, text, addSpecial, parseSpecial)

    fun detokenize(tokens: IntArray): String = CriaNative.textOf(number, tokens)

    /** Also closes its chats and stops a running answer. Any thread, any number of times. */
    override fun close() = CriaNative.closeModel(number)

    companion object {
        /** The version of the native library. */
        @JvmStatic
        val version: String get() = CriaNative.version()

        @JvmStatic
        @JvmOverloads
        fun open(
            path: String,
            options: ModelOptions = ModelOptions(),
            listener: LoadListener? = null,
        ): Model = Model(CriaNative.load(path, -1, 0, 0, options, listener))

        /** The descriptor may be closed afterwards, here and below. */
        @JvmStatic
        @JvmOverloads
        fun open(
            file: ParcelFileDescriptor,
            options: ModelOptions = ModelOptions(),
            listener: LoadListener? = null,
        ): Model = Model(CriaNative.load(null, file.fd, 0, 0, options, listener))

        /** An asset that is stored uncompressed: `context.assets.openFd("model.cria")`. */
        @JvmStatic
        @JvmOverloads
        fun open(
            asset: AssetFileDescriptor,
            options: ModelOptions = ModelOptions(),
            listener: LoadListener? = null,
        ): Model =
            Model(
                CriaNative.load(
                    null,
                    asset.parcelFileDescriptor.fd,
                    asset.startOffset,
                    lengthOf(asset),
                    options,
                    listener,
                ),
            )

        /** The memory that [open] would take, without opening the model. */
        @JvmStatic
        @JvmOverloads
        fun plan(path: String, options: ModelOptions = ModelOptions()): MemoryPlan =
            CriaNative.plan(path, -1, 0, 0, options)

        @JvmStatic
        @JvmOverloads
        fun plan(file: ParcelFileDescriptor, options: ModelOptions = ModelOptions()): MemoryPlan =
            CriaNative.plan(null, file.fd, 0, 0, options)

        @JvmStatic
        @JvmOverloads
        fun plan(asset: AssetFileDescriptor, options: ModelOptions = ModelOptions()): MemoryPlan =
            CriaNative.plan(
                null,
                asset.parcelFileDescriptor.fd,
                asset.startOffset,
                lengthOf(asset),
                options,
            )

        // To the end of the file if Android does not know the length.
        private fun lengthOf(asset: AssetFileDescriptor): Long = maxOf(0, asset.declaredLength)
    }
}

/** A conversation in the context of a [Model]. Closing the model closes it, too. */
class Chat internal constructor(
    private val number: Long,
    /** Of a loaded chat: whether its first answer need not read the messages again. */
    val isContextRestored: Boolean = false,
) : AutoCloseable {
    /** How many tokens of the context it takes. Any thread, also during an answer. */
    val contextUsed: Int get() = CriaNative.contextUsed(number)

    /**
     * Answers a message and keeps both. If it fails, the chat is as it was before, except for turns
     * that were dropped from a full context.
     */
    @JvmOverloads
    fun send(message: String, listener: TextListener? = null): Reply =
        CriaNative.send(number, message, listener)

    /** The same for a message of any role except assistant. */
    @JvmOverloads
    fun send(message: Message, listener: TextListener? = null): Reply =
        CriaNative.send(number, message, listener)

    /** Answers the last message, which must not be an answer. */
    @JvmOverloads
    fun answer(listener: TextListener? = null): Reply = CriaNative.answer(number, false, listener)

    /** Replaces the answer at the end by another one; if it fails, the old one is kept. */
    @JvmOverloads
    fun regenerate(listener: TextListener? = null): Reply =
        CriaNative.answer(number, true, listener)

    /**
     * Writes the messages and what the context has of them to a file that only the app may read,
     * for [Model.loadChat]. An older file is replaced when the new one is complete.
     */
    fun save(path: String) = CriaNative.saveChat(number, path)

    /** The messages that were not dropped from a full context. */
    val messages: List<Message> get() = CriaNative.messages(number)

    /** Drops the last message of the user and everything after it. */
    fun dropLastTurn() = CriaNative.dropLastTurn(number)

    /** Variables of the chat template from the next message on: a JSON object, or "" for none. */
    fun setVariables(json: String) = CriaNative.setVariables(number, json)

    /**
     * The logits of the token after the messages, and after the beginning of an answer unless the
     * last one is an answer.
     */
    @JvmOverloads
    fun logits(listener: TextListener? = null): FloatArray =
        CriaNative.chatLogits(number, listener)

    /**
     * Stops its answer or, if there is none, the next one: until [clearCancel], every one is
     * stopped. Any thread, also in a listener.
     */
    fun cancel() = CriaNative.cancelChat(number)

    fun clearCancel() = CriaNative.clearCancelOfChat(number)

    /** Sets the options from the next message on. */
    fun setOptions(options: GenerationOptions) = CriaNative.setChatOptions(number, options)

    /** Drops everything except the system prompt. */
    fun reset() = CriaNative.resetChat(number)

    /** Also stops its answer. Any thread, any number of times. */
    override fun close() = CriaNative.closeChat(number)
}
