package org.cria

import android.content.res.AssetFileDescriptor
import android.os.ParcelFileDescriptor

/**
 * A language model with one context. Opening one and generating take time: do not call them on
 * the main thread. Any thread may call, but only one at a time may generate: a second one gets a
 * [CriaException] of status USAGE. [close] frees the memory, which the garbage collector does
 * not free.
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
class Chat internal constructor(private val number: Long) : AutoCloseable {
    /** How many tokens of the context it takes. Any thread, also during an answer. */
    val contextUsed: Int get() = CriaNative.contextUsed(number)

    /**
     * Answers a message and keeps both. If it fails, the chat is as it was before, except for turns
     * that were dropped from a full context.
     */
    @JvmOverloads
    fun send(message: String, listener: TextListener? = null): Reply =
        CriaNative.send(number, message, listener)

    /** Sets the options from the next message on. */
    fun setOptions(options: GenerationOptions) = CriaNative.setChatOptions(number, options)

    /** Drops everything except the system prompt. */
    fun reset() = CriaNative.resetChat(number)

    /** Stops its answer at the next piece of text. Any thread, any number of times. */
    override fun close() = CriaNative.closeChat(number)
}
