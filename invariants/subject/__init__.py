"""Real schedulers as subjects of the same checker: driven by the model's actions, observed as the model's state.

Nothing in this folder imports vLLM when it is imported: only functions do, once a subject is wanted.
"""
