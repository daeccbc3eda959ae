"""What is asked: the turn, the rubric's words as data, the request made of them, and the verdict read back."""
