#!/usr/bin/env python3
"""Extracts fields of ten letters to a shop, as JSON that a schema describes: extract_fields.py MODEL

Nothing that the model writes can have another form, so that the program reads each answer without checking it.
"""

import sys

import cria

LETTERS = [
    "Hello, my lamp arrived broken yesterday. I would like my money back. Best, Ann Miller, Leeds",
    "Dear team, when will order 4417 arrive? I have waited for two weeks. Omar Haddad",
    "The blue teapot is wonderful, thank you! Greetings from Lima, Rosa",
    "Please send a second chair like the one of order 1290. Kind regards, Jonas Weber",
    "You charged me twice for order 883. Please correct this today. P. Okafor",
    "Is the oak table available in white? Thanks, Mei",
    "The screws of the shelf are missing, so I cannot use it. Order 5102. Ivan Petrov",
    "I would like to return the carpet, it is too large for my room. Sofia Rossi",
    "Your shop was a pleasure, I will come back. Tom",
    "Order 3008 came to my neighbour again. Please check my address. Lena Berg",
]

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["customer", "kind", "order", "urgent"],
    "properties": {
        "customer": {"type": "string", "minLength": 1, "maxLength": 30},
        "kind": {"enum": ["complaint", "question", "praise", "purchase"]},
        "order": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9999}, {"type": "null"}]},
        "urgent": {"type": "boolean"},
    },
}

INSTRUCTION = ("Extract from the letter: the name of the customer, the kind of the letter, the number of the order or "
               "null, and whether it is urgent. Answer in JSON.")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    # The plan has the constraint, too: after loading, nothing more is needed.
    with cria.Model(sys.argv[1], max_constraints=1) as model:
        print(f"{'customer':30}  {'kind':9}  {'order':>5}  urgent")
        for letter in LETTERS:
            # The instruction is read once: what the context still holds is not read again.
            prompt = [{"role": "user", "content": f"{INSTRUCTION}\n\nLetter: {letter}"}]
            fields = model.chat(prompt, schema=SCHEMA, temperature=0, max_tokens=100).read().json()
            order = "-" if fields["order"] is None else fields["order"]
            print(f"{fields['customer']:30}  {fields['kind']:9}  {order:>5}  {'yes' if fields['urgent'] else 'no'}")


if __name__ == "__main__":
    try:
        main()
    except cria.Error as error:
        sys.exit(str(error))
