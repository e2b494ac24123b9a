"""Views that a function returns are views for its caller too, of what they are views of in eager."""

import unittest

import torch

import tandem


def neighbours(x):
    transposed = (x + 1).transpose(0, 1)
    return transposed, transposed[1:]


def written(x):
    transposed = (x * 2).transpose(0, 1)
    transposed[0].mul_(3)
    return transposed


def made_without_grad(x):
    with torch.no_grad():
        return (x * 2).view(-1)


def partly_made_without_grad(x):
    with torch.no_grad():
        transposed = (x * 2).t()
    return transposed[1:]


def view_of_no_grads_result(x):
    with torch.no_grad():
        y = x * 2
    return y.t()


FUNCTIONS = {
    "transposed": lambda x: (x * 2).t(),
    "a part": lambda x: (x * 2)[1:],
    "flattened": lambda x: (x * 2).transpose(0, 1).flatten(),
    "a view of a view": lambda x: (x * 2).t()[1:].unsqueeze(0),
    "parts": lambda x: (x * 2).split(1),
    "neighbours": neighbours,
    "with its base": lambda x: (y := x * 2, y.t()),
    "written": written,
    "diagonal": lambda x: (x * 2).diagonal(),
    "expanded": lambda x: (x * 2).expand(2, *x.shape),
    "no view": lambda x: x * 2,
}


def seen(outputs):
    """What views say of themselves, and which of them lie on one tensor."""
    tensors = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    bases = [t._base for t in tensors]
    return [
        (
            t._is_view(),
            t.storage_offset(),
            t.untyped_storage().nbytes(),
            None if t._base is None else (t._base.shape, t._base.stride()),
            [other is t._base for other in (*tensors, *bases)] if t._is_view() else [],
            type(t.grad_fn).__name__ if t._is_view() else t.grad_fn is None,
        )
        for t in tensors
    ]


class Views(unittest.TestCase):
    def check(self, compile):
        for name, function in FUNCTIONS.items():
            for requires_grad in (False, True):
                with self.subTest(name, requires_grad=requires_grad):
                    x = torch.arange(12.0).reshape(3, 4).requires_grad_(requires_grad)
                    compiled = compile(function)
                    for _ in range(3):
                        self.assertEqual(seen(compiled(x)), seen(function(x)))

    def test_are_views(self):
        self.check(tandem.compile)

    def test_are_views_without_watched_calls(self):
        self.check(lambda function: tandem.compile(function, watched_calls=False))

    def test_are_views_through_dynamo(self):
        def compile(function):
            torch._dynamo.reset()
            return torch.compile(function, backend="tandem")

        self.check(compile)

    def test_gradients_go_through_them(self):
        for name, function in FUNCTIONS.items():
            with self.subTest(name):
                gradients = []
                for one in (function, tandem.compile(function, watched_calls=False)):
                    torch.manual_seed(0)
                    x = torch.randn(3, 4, requires_grad=True)
                    outputs = one(x)
                    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
                    sum((t * torch.randn_like(t)).sum() for t in outputs).backward()
                    gradients.append(x.grad)
                self.assertTrue(torch.equal(*gradients))

    def test_a_view_is_not_detached_in_place(self):
        for compile in (lambda f: f, lambda f: tandem.compile(f, watched_calls=False)):
            with self.assertRaisesRegex(RuntimeError, "Can't detach views in-place"):
                compile(lambda x: (x * 2).t())(torch.ones(2, 3, requires_grad=True)).detach_()

    def test_are_written_where_eager_lets_them(self):
        def write(compiled, x, grad_mode):
            with torch.set_grad_enabled(grad_mode):
                view = compiled(x)
            try:
                return view.mul_(torch.ones_like(view, requires_grad=True)).requires_grad
            except RuntimeError as error:
                return str(error)

        doors = {
            "tandem": lambda f: tandem.compile(f, watched_calls=False),
            "Dynamo": lambda f: torch.compile(f, backend="tandem"),
        }
        for function in (made_without_grad, partly_made_without_grad, view_of_no_grads_result):
            for grad_mode in (True, False):
                for name, compile in doors.items():
                    with self.subTest(function.__name__, grad_mode=grad_mode, door=name):
                        torch._dynamo.reset()
                        x = torch.ones(3, 4, requires_grad=True)
                        self.assertEqual(
                            write(compile(function), x, grad_mode), write(function, x, grad_mode)
                        )


if __name__ == "__main__":
    unittest.main()
