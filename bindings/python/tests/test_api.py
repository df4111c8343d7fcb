"""What each object does, with arguments in and out of bounds."""

import asyncio
import ctypes
import importlib.util
import math
import mmap
import os
import pathlib
import re
import unittest
from array import array

import checkpoints
import support

import proofinfer
from proofinfer import _ffi, _library, errors


class Header(unittest.TestCase):
    """The prototypes, codes and names are those of the public header."""

    def setUp(self):
        path = os.path.join(support.REPOSITORY, "include", "proofinfer.h")
        if not os.path.exists(path):
            self.skipTest(f"SKIPPED[header]: {path} is absent")
        with open(path, encoding="utf-8") as file:
            self.text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)

    def kind(self, declaration):
        if "*" in declaration or "_function" in declaration:
            return ctypes.c_char_p if declaration.strip() == "const char *" else ctypes.c_void_p
        name = declaration.replace("const", "").split()[0]
        names = {"int32_t": "c_int32", "int64_t": "c_int64", "uint32_t": "c_uint32", "uint64_t": "c_uint64", "size_t": "c_size_t"}
        return None if name == "void" else getattr(ctypes, names.get(name, "c_" + name))

    def test_every_function_with_its_types(self):
        found = {}
        for result, name, parameters in re.findall(r"PROOFINFER_API\s+([\w\s*]+?)proofinfer_(\w+)\(([^)]*)\);", self.text):
            types = [] if parameters.strip() == "void" else [self.kind(each) for each in parameters.split(",")]
            found[name] = (self.kind(result), tuple(types))
        self.assertGreater(len(found), 60)
        for name, types in found.items():
            self.assertEqual(_ffi.PROTOTYPES.get(name), types, f"the line of proofinfer_{name} in _ffi.py")
        self.assertEqual(set(_ffi.PROTOTYPES) - set(found), set())

    def test_every_status_has_a_class(self):
        codes = {int(code): name for name, code in re.findall(r"#define (PROOFINFER_E_\w+) (\d+)", self.text)}
        self.assertEqual(codes, {code: kind.name for code, kind in errors.BY_CODE.items()})
        for kind in errors.BY_CODE.values():
            self.assertTrue(issubclass(kind, proofinfer.ProofinferError))
            self.assertIs(getattr(proofinfer, kind.__name__), kind)

    def test_versions_agree(self):
        parts = [re.search(rf"VERSION_{part} (\d+)", self.text).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(proofinfer.__version__, ".".join(parts))
        self.assertEqual(proofinfer.version(), proofinfer.__version__)
        self.assertEqual(_library.MAJOR, int(parts[0]))

    def test_licence_is_the_projects(self):
        copy = pathlib.Path(support.HERE).parent / "LICENSE"
        if not copy.exists():
            self.skipTest("SKIPPED[package-source]: the tests run from a copy")
        self.assertEqual(copy.read_bytes(), (pathlib.Path(support.REPOSITORY) / "LICENSE").read_bytes())


class Library(unittest.TestCase):
    def run_with(self, library, code="import proofinfer; proofinfer.version()"):
        return support.run_script(code, environment={"PROOFINFER_LIBRARY": library})

    def test_an_absent_library_names_what_was_tried(self):
        done = self.run_with("/no/such/libproofinfer.so.1")
        self.assertIn("LibraryError: libproofinfer cannot be loaded. Tried: the environment variable", done.stderr)
        self.assertIn("/no/such/libproofinfer.so.1: no such file", done.stderr)

    def test_the_search_without_names_goes_from_the_package_to_the_system(self):
        old = os.environ.pop("PROOFINFER_LIBRARY", None)
        try:
            places = [place for place, _ in _library.candidates(None)]
        finally:
            if old is not None:
                os.environ["PROOFINFER_LIBRARY"] = old
        self.assertEqual(places[:2], ["the package's own copy", "the system's libraries"])

    def test_a_given_path_comes_first(self):
        done = self.run_with("/no/such/one", "import proofinfer; proofinfer.load('/no/such/two')")
        self.assertIn("Tried: the given path, /no/such/two: no such file", done.stderr)
        self.assertNotIn("one", done.stderr.split("Tried")[1])

    def test_a_file_that_is_no_library(self):
        self.assertIn("LibraryError", self.run_with(__file__).stderr)

    def test_a_library_that_is_another_one(self):
        self.assertIn("is no libproofinfer", self.run_with(_other_library()).stderr)

    def test_another_major_version_is_refused_in_words(self):
        class Newer:
            class proofinfer_version_number:  # noqa: N801
                restype = None

                def __new__(cls):
                    return 2003004

        with self.assertRaisesRegex(proofinfer.LibraryError, r"is libproofinfer 2\.3\.4; this package needs 1\.x"):
            _library.check_version(Newer, "libproofinfer.so.2")

    def test_load_twice_and_another_one(self):
        name = proofinfer.load()
        self.assertEqual(proofinfer.load(), name)
        if os.path.exists(name):
            self.assertEqual(proofinfer.load(name), name)
        with self.assertRaisesRegex(proofinfer.StateError, "loaded already"):
            proofinfer.load("/no/such/libproofinfer.so")


def _other_library():
    return importlib.util.find_spec("_ctypes").origin


class Facts(unittest.TestCase):
    def test_build_isas_options_selftest(self):
        self.assertIn("kernels", proofinfer.build())
        self.assertIn(proofinfer.Isa("scalar", True), proofinfer.isas())
        names = {option.name: option for option in proofinfer.options()}
        self.assertEqual(names["threads"].type, "i64")
        self.assertIn("session", names["context_length"].scope)
        proofinfer.selftest()


class Models(unittest.TestCase):
    def test_from_a_path(self):
        for path in (support.small_path(), pathlib.Path(support.small_path())):
            with proofinfer.Model(path) as model:
                self.assertEqual(model.vocab_size, 384)

    def test_from_any_buffer(self):
        data = support.small_bytes()
        with open(support.small_path(), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            for source in (data, bytearray(data), memoryview(data), array("B", data), mapped):
                with proofinfer.Model.from_bytes(source) as model:
                    self.assertEqual(model.dim, 16)

    def test_a_path_is_no_content_and_content_no_path(self):
        with self.assertRaises(TypeError):
            proofinfer.Model(support.small_bytes())
        with self.assertRaises(TypeError):
            proofinfer.Model.from_bytes("small.bin")

    def test_properties(self):
        model, _ = support.open_small(threads=2, isa="scalar")
        for name, value in checkpoints.SMALL.items():
            self.assertEqual(getattr(model, name), value)
        self.assertEqual((model.head_size, model.group_size, model.threads), (4, 0, 2))
        self.assertEqual((model.format, model.element_type, model.isa), ("llama2.c legacy", "f32", "scalar"))
        self.assertIs(model.shared_classifier, True)
        self.assertEqual(model.file_bytes, len(support.small_bytes()))
        self.assertGreaterEqual(model.memory_bytes, model.weight_bytes)
        for name, value in model.properties().items():
            self.assertEqual(getattr(model, name), value)
        weights = [tensor for tensor in model.tensors if "rope" not in tensor.name]
        self.assertEqual(model.parameter_count, sum(tensor.rows * tensor.columns for tensor in weights))

    def test_tensors(self):
        model, _ = support.open_small()
        tensors = {tensor.name: tensor for tensor in model.tensors}
        self.assertEqual((tensors["layers.1.wq"].rows, tensors["layers.1.wq"].columns), (16, 16))
        self.assertIs(tensors["layers.1.wq"].is_quantized, False)

    def test_bad_files(self):
        data = support.small_bytes()
        cases = (
            (data[:-1], proofinfer.ProofinferError),
            (b"", proofinfer.ProofinferError),
            (b"<html>" * 100, proofinfer.UnrecognizedError),
            (data + b"x", proofinfer.ProofinferError),
        )
        for content, kind in cases:
            with self.assertRaises(kind) as caught:
                proofinfer.Model.from_bytes(content)
            self.assertTrue(str(caught.exception))
        with self.assertRaises(proofinfer.IoError) as caught:
            proofinfer.Model("/no/such/model.bin")
        self.assertIsInstance(caught.exception, OSError)
        self.assertEqual((caught.exception.code, caught.exception.name), (4, "PROOFINFER_E_IO"))
        self.assertIn("/no/such/model.bin", str(caught.exception))

    def test_bad_options(self):
        data = support.small_bytes()
        for options in ({"threads": 0}, {"threads": -1}, {"threads": 2**70}, {"isa": "sse9"}, {"memory_limit_bytes": -1}):
            with self.assertRaises(proofinfer.ArgumentError, msg=options):
                proofinfer.Model.from_bytes(data, **options)
        with self.assertRaises(TypeError):
            proofinfer.Model.from_bytes(data, threads=1.5)
        with self.assertRaises(proofinfer.LimitError):
            proofinfer.Model.from_bytes(data, memory_limit_bytes=1000)

    def test_convert(self):
        path = os.path.join(support.folder(), "converted.bin")
        proofinfer.convert(support.small_path(), path, "version 2")
        with proofinfer.Model(path) as model:
            self.assertEqual((model.format, model.element_type, model.group_size), ("llama2.c version 2", "q8_0", 16))
        self.assertRaises(proofinfer.ArgumentError, proofinfer.convert, support.small_path(), path, "version 3")
        self.assertRaises(proofinfer.ArgumentError, proofinfer.convert, support.small_path(), path, "version 2", group_size=7)
        with proofinfer.Cancel() as cancel:
            cancel.request()
            with self.assertRaises(proofinfer.CancelledError):
                proofinfer.convert(support.small_path(), path + "2", "legacy", cancel=cancel)
        self.assertFalse(os.path.exists(path + "2"))

    def test_a_packed_file_is_mapped(self):
        path = os.path.join(support.folder(), "packed.bin")
        proofinfer.convert(support.small_path(), path, "packed")
        logits = []
        for options in ({}, {"map": False}, {"verify": True}):
            with proofinfer.Model(path, **options) as model, model.session() as session:
                self.assertEqual((model.format, model.is_mapped), ("proofinfer packed", options != {"map": False}))
                session.append([1, 2])
                logits.append(session.logits_copy())
        with proofinfer.Model(support.small_path()) as model, model.session() as session:
            self.assertFalse(model.is_mapped)
            session.append([1, 2])
            self.assertEqual(logits, [session.logits_copy()] * 3)
        with open(path, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"x")
        with proofinfer.Model(path):
            pass
        self.assertRaises(proofinfer.FormatError, proofinfer.Model, path, verify=True)

    def test_a_requested_cancel_stops_the_loading(self):
        with proofinfer.Cancel() as cancel:
            cancel.request()
            with self.assertRaises(proofinfer.CancelledError):
                proofinfer.Model.from_bytes(support.small_bytes(), cancel=cancel)
            cancel.reset()
            proofinfer.Model.from_bytes(support.small_bytes(), cancel=cancel)
            done, total = cancel.progress
            self.assertEqual(done, total)
            self.assertGreater(total, 0)


class Tokenizers(support.SmallTest):
    def test_encode_and_decode(self):
        for text in ("", "hello", " hello hell", "na\u00efve \N{GRINNING FACE}\N{GRIMACING FACE}", "\0\0", "<s>", "hello" * 1000):
            ids = self.tokenizer.encode(text)
            self.assertEqual(ids[0], self.tokenizer.bos)
            self.assertEqual(self.tokenizer.decode(ids), text)
            self.assertEqual(self.tokenizer.encode(text.encode()), ids)
            self.assertEqual(self.tokenizer.encode(text, bos=False), ids[1:])
            self.assertEqual(self.tokenizer.encode(text, eos=True), [*ids, self.tokenizer.eos])

    def test_bytes_that_are_no_utf8(self):
        ids = self.tokenizer.encode(b"a\xff\xfeb")
        self.assertEqual(self.tokenizer.decode(ids), "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b")
        self.assertEqual(self.tokenizer.encode(os.fsdecode(b"a\xff\xfeb")), ids)

    def test_decode_bytes_and_pieces(self):
        self.assertEqual(self.tokenizer.decode_bytes(3 + 10), b"\n")
        self.assertEqual(self.tokenizer.decode_bytes(3 + 10, spelled=True), b"<0x0A>")
        self.assertEqual(self.tokenizer.piece(3 + 10).data, b"<0x0A>")
        longest = max((self.tokenizer.piece(token) for token in range(len(self.tokenizer))), key=lambda piece: len(piece.data))
        self.assertEqual(longest, (b"a piece that is longer than most buffers " * 20, 820.0))
        space = self.tokenizer.encode("x")[1]
        self.assertEqual(self.tokenizer.decode_bytes(space), b" ")
        self.assertEqual(self.tokenizer.decode_bytes(space, previous=1), b"")

    def test_stream_never_cuts_a_character(self):
        with self.tokenizer.stream() as stream:
            parts = [stream.push(3 + byte) for byte in "\N{GRIMACING FACE}".encode()]
            self.assertEqual(parts, ["", "", "", "\N{GRIMACING FACE}"])
            self.assertEqual(stream.push(3 + 0xF0), "")
            self.assertEqual(stream.flush(), "\N{REPLACEMENT CHARACTER}")
            self.assertEqual(stream.flush(), "")

    def test_arguments_out_of_bounds(self):
        for call in (
            lambda: self.tokenizer.piece(384),
            lambda: self.tokenizer.piece(-1),
            lambda: self.tokenizer.piece(2**32),
            lambda: self.tokenizer.decode([384]),
            lambda: self.tokenizer.decode([2**40]),
            lambda: self.tokenizer.decode_bytes(384),
            lambda: self.tokenizer.stream(400),
            lambda: proofinfer.Tokenizer.from_bytes(support.vocabulary(), 0),
            lambda: proofinfer.Tokenizer.from_bytes(support.vocabulary(), -5),
        ):
            self.assertRaises(proofinfer.ArgumentError, call)
        for call in (lambda: self.tokenizer.encode(5), lambda: self.tokenizer.decode("text"), lambda: self.tokenizer.piece("a")):
            self.assertRaises(TypeError, call)
        with self.assertRaises(proofinfer.TruncatedError):
            proofinfer.Tokenizer.from_bytes(support.vocabulary(), 385)
        with self.assertRaises(UnicodeEncodeError):
            self.tokenizer.encode("\ud83d")


class Sessions(support.SmallTest):
    def test_any_split_gives_the_same_logits(self):
        tokens = [1, 30, 300, 7, 8, 9]
        with self.model.session() as one, self.model.session() as other:
            one.append(tokens, logits="all")
            for position, token in enumerate(tokens):
                other.append([token])
                self.assertEqual(one.logits_copy(position), other.logits_copy())
            self.assertEqual((one.position, len(other), one.tokens), (6, 6, tokens))

    def test_logits_without_a_copy(self):
        with self.model.session() as session:
            session.append([1, 2])
            view = session.logits()
            self.assertEqual((view.format, view.shape, view.readonly, view.contiguous), ("f", (384,), True, True))
            self.assertEqual(view.tolist(), session.logits(1).tolist())
            with self.assertRaises(TypeError):
                view[0] = 1.0

    def test_a_view_ends_with_the_next_append(self):
        with self.model.session() as session:
            for move in (
                lambda: session.append([3]),
                lambda: session.append([3, 4], logits="all"),
                lambda: session.rewind(1),
                lambda: next(self.generate(session)),
                session.close,
            ):
                session.append([1])
                view = session.logits()
                move()
                with self.assertRaisesRegex(ValueError, "released"):
                    view[0]

    def test_what_a_view_was_handed_to_keeps_the_session_where_it_is(self):
        session = self.model.session()
        session.append([1])
        view = session.logits()
        part = view[5:7]
        wanted = part.tolist()
        for move in (lambda: session.append([3]), lambda: session.rewind(0), lambda: next(self.generate(session))):
            with self.assertRaisesRegex(BufferError, "copy what you keep"):
                move()
        self.assertEqual(session.position, 1)
        session.close()
        self.model.close()
        self.assertEqual(part.tolist(), wanted)
        del part, view

    def test_a_view_that_is_gone_hinders_nothing(self):
        with self.model.session() as session:
            session.append([1])
            part = session.logits()[5:7]
            del part
            session.append([2])
            ctypes_array = (ctypes.c_char * 4).from_buffer_copy(session.logits())
            self.assertEqual(len(ctypes_array), 4)
            session.append([3])

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "SKIPPED[numpy]: it is not installed")
    def test_numpy_sees_the_same_memory(self):
        import numpy

        with self.model.session() as session:
            session.append([1])
            logits = numpy.frombuffer(session.logits(), dtype=numpy.float32)
            self.assertEqual(int(logits.argmax()), self.expected(1)[0])
            with proofinfer.Sampler(self.model) as sampler:
                self.assertEqual(sampler.sample(logits), self.expected(1)[0])
                self.assertEqual(sampler.sample(logits.astype(numpy.float64)), self.expected(1)[0])
            self.assertRaises(BufferError, session.append, [2])
            kept = logits.copy()
            del logits
            session.append(numpy.array([2, 3]))
            self.assertEqual(kept.shape, (384,))

    def test_package_does_not_import_numpy_or_asyncio(self):
        done = support.run_script("import proofinfer; print('numpy' in sys.modules, 'asyncio' in sys.modules)")
        self.assertEqual(done.stdout.strip(), "False False", done.stderr)

    def test_clone(self):
        with self.model.session(context_length=120) as session:
            session.append(list(range(1, 100)))
            with session.clone() as other, session.clone(context_length=99) as full:
                self.assertEqual((other.tokens, other.context_length, full.context_length), (session.tokens, 120, 99))
                self.assertEqual(other.logits_copy(), session.logits_copy())
                session.append([5])
                other.append([5])
                self.assertEqual(other.logits_copy(), session.logits_copy())
                other.rewind(3)
                other.append([7])
                with self.model.session() as fresh:
                    fresh.append([1, 2, 3, 7])
                    self.assertEqual(other.logits_copy(), fresh.logits_copy())
                self.assertRaises(proofinfer.ContextError, full.append, [1])
            self.assertRaises(proofinfer.ArgumentError, session.clone, context_length=7)

    def test_save_and_restore(self):
        with self.model.session() as session, self.model.session() as other:
            session.append([1, 2, 3])
            state = session.save()
            other.append([9])
            view = other.logits()
            other.restore(state)
            self.assertRaises(ValueError, lambda: view[0])
            self.assertEqual((other.tokens, other.logits_copy()), ([1, 2, 3], session.logits_copy()))
            self.assertEqual(other.save(), state)
            for bad in (b"", state[:-1], state + b"x", state[:100] + b"x" + state[101:]):
                self.assertRaises(proofinfer.ProofinferError, other.restore, bad)
            self.assertEqual(other.save(), state)
            other.restore(bytearray(self.model.session().save()))
            self.assertEqual(other.tokens, [])

    def test_rewind(self):
        with self.model.session() as session:
            session.append([1, 2, 3, 4])
            session.rewind(-2)
            self.assertEqual(session.tokens, [1, 2])
            self.assertRaises(proofinfer.StateError, session.logits)
            self.assertRaises(proofinfer.ArgumentError, session.rewind, 3)
            self.assertRaises(proofinfer.ArgumentError, session.rewind, -3)
            session.append([3, 4])
            again = session.logits_copy()
            with self.model.session() as other:
                other.append([1, 2, 3, 4])
                self.assertEqual(again, other.logits_copy())

    def test_arguments_out_of_bounds(self):
        with self.model.session(context_length=4) as session:
            self.assertEqual(session.context_length, 4)
            self.assertRaises(proofinfer.ArgumentError, session.append, [384])
            self.assertRaises(proofinfer.ArgumentError, session.append, [-1])
            self.assertRaises(proofinfer.ArgumentError, session.append, [2**32 + 1])
            self.assertRaises(proofinfer.ArgumentError, session.append, [1], "some")
            self.assertRaises(TypeError, session.append, ["a"])
            self.assertRaises(TypeError, session.append, "text")
            self.assertRaises(proofinfer.ContextError, session.append, [1] * 5)
            self.assertRaises(proofinfer.ArgumentError, session.logits)
            session.append([1], logits="none")
            self.assertRaises(proofinfer.StateError, session.logits)
            self.assertRaises(proofinfer.ArgumentError, session.logits, 1)
            session.append([])
            self.assertEqual(session.tokens, [1])
        for options in ({"context_length": 129}, {"context_length": -1}, {"isa": "none"}):
            self.assertRaises(proofinfer.ArgumentError, self.model.session, **options)
        self.assertRaises(proofinfer.LimitError, self.model.session, memory_limit_bytes=10)

    def test_cancel(self):
        with self.model.session() as session, proofinfer.Cancel() as cancel:
            cancel.request()
            self.assertTrue(cancel.requested)
            self.assertRaises(proofinfer.CancelledError, session.append, [1, 2], cancel=cancel)
            self.assertEqual(session.position, 0)
            cancel.reset()
            session.append([1, 2], cancel=cancel)
            self.assertEqual(cancel.progress, (2, 2))


class Batches(support.SmallTest):
    def test_each_session_gets_the_bits_of_running_alone(self):
        sessions = [self.model.session() for _ in range(3)]
        with proofinfer.Batch(self.model, 8) as batch:
            for round_ in range(4):
                for number, session in enumerate(sessions):
                    batch.add(session, 5 * number + round_, logits=round_ == 3)
                batch.add(sessions[0], 77)
                self.assertEqual(len(batch), 4)
                batch.evaluate()
                self.assertEqual(len(batch), 0)
        for session in sessions:
            with self.model.session() as alone:
                alone.append(session.tokens)
                self.assertEqual(alone.logits_copy(), session.logits_copy())

    def test_clear_limits_and_errors(self):
        session = self.model.session()
        with proofinfer.Batch(self.model, 1) as batch:
            batch.add(session, 1)
            self.assertRaises(proofinfer.StateError, batch.add, session, 2)
            batch.clear()
            self.assertRaises(proofinfer.ArgumentError, batch.add, session, 384)
            self.assertEqual(len(batch), 0)
            batch.add(session, 1)
            session.append([2])
            self.assertRaises(proofinfer.StateError, batch.evaluate)
            self.assertEqual(len(batch), 1)
        self.assertRaises(proofinfer.ArgumentError, proofinfer.Batch, self.model, 0)
        self.assertRaises(proofinfer.ArgumentError, proofinfer.Batch, self.model, -1)

    def test_views_cancel_and_async(self):
        session = self.model.session()
        session.append([1])
        with proofinfer.Batch(self.model, 1) as batch, proofinfer.Cancel() as cancel:
            batch.add(session, 2)
            part = session.logits()[:1]
            self.assertRaises(BufferError, batch.evaluate)
            del part
            cancel.request()
            self.assertRaises(proofinfer.CancelledError, batch.evaluate, cancel=cancel)
            asyncio.run(batch.evaluate_async())
        self.assertEqual(session.tokens, [1, 2])


class Samplers(support.SmallTest):
    def test_sources_of_logits(self):
        values = [0.0] * 384
        values[17] = 2.5
        with proofinfer.Sampler(self.model) as sampler:
            for logits in (values, tuple(values), array("f", values), array("d", values), memoryview(array("f", values))):
                self.assertEqual(sampler.sample(logits), 17)

    def test_seeds(self):
        logits = array("f", range(384))
        draws = []
        with proofinfer.Sampler(self.model, temperature=100.0, top_p=1.0, seed=3) as sampler:
            for _ in range(2):
                draws.append([sampler.sample(logits) for _ in range(20)])
                sampler.reseed(3)
        self.assertEqual(draws[0], draws[1])
        self.assertGreater(len(set(draws[0])), 5)

    def test_arguments_out_of_bounds(self):
        nan, inf = float("nan"), float("inf")
        for options in ({"temperature": -1.0}, {"temperature": nan}, {"top_p": nan}, {"seed": -1}, {"seed": 2**64}):
            self.assertRaises(proofinfer.ArgumentError, proofinfer.Sampler, 8, **options)
        self.assertRaises(proofinfer.ArgumentError, proofinfer.Sampler, 0)
        with proofinfer.Sampler(3) as sampler:
            self.assertRaises(proofinfer.ArgumentError, sampler.sample, [1.0, 2.0])
            self.assertRaises(proofinfer.NotFiniteError, sampler.sample, [1.0, inf, 2.0])
            self.assertRaises(TypeError, sampler.sample, "abc")
            self.assertRaises(proofinfer.ArgumentError, sampler.sample, b"")

    def test_filters(self):
        logits = array("f", [float(-abs(i - 100)) for i in range(384)])
        for options, wanted in (
            ({"top_k": 3}, {99, 100, 101}),
            ({"min_p": 0.3}, {99, 100, 101}),  # their share is 0.37
            ({"typical_p": 0.1, "temperature": 0.5}, {100}),
            ({"top_k": 1}, {100}),
        ):
            with proofinfer.Sampler(384, **{"temperature": 1.0, "top_p": 1.0, **options}) as sampler:
                self.assertEqual({sampler.sample(logits) for _ in range(200)}, wanted, options)

    def test_penalties_and_what_counts_for_them(self):
        logits = [5.0, 4.0, 3.0]
        for options in ({"presence_penalty": 10.0}, {"frequency_penalty": 10.0}, {"repetition_penalty": 100.0}):
            with proofinfer.Sampler(3, penalty_window=2, **options) as sampler:
                self.assertEqual([sampler.sample(logits) for _ in range(6)], [0, 1, 2, 0, 1, 2])
                sampler.reseed(1)
                sampler.accept([0, 1])
                self.assertEqual(sampler.sample(logits), 2)
                self.assertRaises(proofinfer.ArgumentError, sampler.accept, [3])

    def test_biases_bans_and_masks(self):
        logits = array("f", range(40))
        with proofinfer.Sampler(40) as sampler:
            sampler.set_bias({3: 100.0, 4: -1.5})
            self.assertEqual(sampler.sample(logits), 3)
            sampler.set_banned([3])
            self.assertEqual(sampler.sample(logits), 39)
            sampler.set_mask(array("I", [0b10110, 0]))
            self.assertEqual(sampler.sample(logits), 4)  # 2.5 is more than 2
            sampler.set_bias({4: -3.0})
            self.assertEqual(sampler.sample(logits), 2)
            sampler.set_mask(array("I", [8, 0]))
            self.assertRaises(proofinfer.StateError, sampler.sample, logits)
            sampler.set_mask(None)
            sampler.set_banned(())
            self.assertEqual(sampler.sample(logits), 39)
            for biases in ({40: 1.0}, {1: float("nan")}, {1: float("inf")}):
                self.assertRaises(proofinfer.ArgumentError, sampler.set_bias, biases)
            self.assertRaises(proofinfer.ArgumentError, sampler.set_banned, [-1])
            self.assertRaises(proofinfer.ArgumentError, sampler.set_mask, array("I", [1]))
            self.assertRaises(TypeError, sampler.set_mask, b"123")
            self.assertRaises(TypeError, sampler.set_mask, [1, 2])

    def test_log_probabilities(self):
        logits = array("f", [0.0, 2.0, 1.0, 2.0])
        total = sum(math.exp(x) for x in logits)
        exact = [x - math.log(total) for x in logits]
        for found, wanted in zip(proofinfer.logprobs(logits, range(4)), exact):
            self.assertAlmostEqual(found, wanted, places=6)
        top = proofinfer.top_logprobs([0.0, 2.0, 1.0, 2.0], 3)
        self.assertEqual([each.token for each in top], [1, 3, 2])
        self.assertEqual([each.logprob for each in top], proofinfer.logprobs(logits, [1, 3, 2]))
        self.assertEqual(proofinfer.top_logprobs(logits, 0), [])
        self.assertRaises(proofinfer.ArgumentError, proofinfer.top_logprobs, logits, 5)
        self.assertRaises(proofinfer.ArgumentError, proofinfer.logprobs, logits, [4])
        self.assertRaises(proofinfer.NotFiniteError, proofinfer.logprobs, [float("nan")], [0])


class Generations(support.SmallTest):
    def test_pieces(self):
        with self.model.session() as session:
            pieces = list(self.generate(session, max_tokens=20))
        self.assertEqual([piece.token for piece in pieces], self.expected(20))
        self.assertEqual([piece.stop_reason for piece in pieces], [None] * 19 + [proofinfer.StopReason.LENGTH])
        text = self.tokenizer.decode([1, *self.expected(20)])
        self.assertEqual("".join(piece.text for piece in pieces), text)
        with self.model.session() as session:
            self.assertEqual(self.generate(session, max_tokens=20).text(), text)

    def test_ends(self):
        reason = proofinfer.StopReason
        third = self.expected(20)[2]
        first = self.expected(20).index(third)
        for options, length, why in (
            ({"max_tokens": 5}, 5, reason.LENGTH),
            ({"stop_tokens": [third]}, first + 1, reason.TOKEN),
            ({}, 128, reason.CONTEXT),
        ):
            with self.model.session() as session:
                generation = self.generate(session, **options)
                self.assertIsNone(generation.stop_reason)
                self.assertEqual(len(list(generation)), length)
                self.assertIs(generation.stop_reason, why)
                self.assertEqual(list(generation), [])

    def test_text_prompts_and_going_on(self):
        with self.model.session() as session:
            first = list(session.generate("hello", self.tokenizer, max_tokens=3, stop_tokens=[]))
            prompt = self.tokenizer.encode("hello")
            self.assertEqual(session.tokens, prompt + [piece.token for piece in first[:-1]])
            more = list(session.generate(" hell", self.tokenizer, max_tokens=3, stop_tokens=[]))
            self.assertEqual(session.tokens[len(prompt) + 2 :][:4], [*self.tokenizer.encode(" hell", bos=False), more[0].token][:4])
            session.append([9])
            self.assertEqual(len(list(session.generate([], self.tokenizer, max_tokens=2))), 2)

    def test_one_sampler_for_many(self):
        def story(**options):
            with self.model.session() as session:
                return [piece.token for piece in self.generate(session, max_tokens=10, **options)]

        with proofinfer.Sampler(self.model, temperature=2.0, seed=9) as sampler:
            first, second = story(sampler=sampler), story(sampler=sampler)
        self.assertEqual(first, story(temperature=2.0, seed=9))
        self.assertNotEqual(first, second)
        self.assertRaises(TypeError, story, sampler=sampler, seed=9)
        self.assertRaises(TypeError, story, sampler=sampler, top_k=4)

    def test_stop_strings_are_cut_out_and_told(self):
        def told(text, stops):
            with self.model.session() as session:
                generation = self.generate(session, max_tokens=len(text.encode()), stop_tokens=[], stop_strings=stops)
                pieces = []
                for byte in text.encode():
                    generation.force(3 + byte)
                    pieces.append(next(generation))
                    if pieces[-1].stop_reason is not None:
                        break
                return [piece.text for piece in pieces], generation.stop_reason, generation.stop_string

        reason = proofinfer.StopReason
        self.assertEqual(told("a\u00e9bcd", ["bx", "bcd"]), (["a", "", "\u00e9", "", "", ""], reason.STRING, "bcd"))
        self.assertEqual(told("abcx", ("bcd", b"never")), (["a", "", "", "bcx"], reason.LENGTH, None))
        self.assertEqual(told("ab", []), (["a", "b"], reason.LENGTH, None))
        self.assertEqual(told("a\u00e9", ["\u00e9"]), (["a", "", ""], reason.STRING, "\u00e9"))
        with self.model.session() as session:
            self.assertRaises(TypeError, self.generate, session, stop_strings="abc")
            self.assertRaises(proofinfer.ArgumentError, self.generate, session, stop_strings=[""])
            self.assertRaises(proofinfer.ArgumentError, self.generate, session, stop_strings=["x"] * 65)

    def test_log_probabilities_of_the_tokens(self):
        with self.model.session() as session:
            generation = self.generate(session, max_tokens=10, stop_tokens=[], logprobs=5, temperature=2.0, seed=4)
            self.assertRaises(proofinfer.StateError, generation.logprobs)
            for piece in generation:
                found = generation.logprobs()
                self.assertEqual(found.top, proofinfer.top_logprobs(session.logits(), 5))
                self.assertEqual([found.logprob], proofinfer.logprobs(session.logits(), [piece.token]))
            with self.assertRaises(proofinfer.StateError):
                self.generate(session, max_tokens=1).logprobs()

    def test_a_mask_a_step_drives_a_generation(self):
        with self.model.session() as session, proofinfer.Sampler(self.model, temperature=1.0) as sampler:
            generation = self.generate(session, sampler=sampler, stop_tokens=[])
            text = ""
            for byte in b'{"a":1}':
                mask = array("I", bytes(4 * ((384 + 31) // 32)))
                mask[(3 + byte) // 32] |= 1 << (3 + byte) % 32
                sampler.set_mask(mask)
                text += next(generation).text
            self.assertEqual(text, '{"a":1}')

    def test_force(self):
        with self.model.session() as session:
            generation = self.generate(session, max_tokens=4)
            generation.force(200)
            self.assertEqual(next(generation).token, 200)
            self.assertNotEqual(next(generation).token, -1)
            self.assertRaises(proofinfer.ArgumentError, generation.force, 384)
            list(generation)
            self.assertRaises(proofinfer.StateError, generation.force, 1)

    def test_a_piece_longer_than_the_buffer(self):
        long_id = next(token for token in range(384) if len(self.tokenizer.piece(token).data) == 820)
        with self.model.session() as session:
            generation = self.generate(session)
            generation.force(long_id)
            self.assertEqual(len(next(generation).text), 820)
            generation.force(3 + 0x41)
            self.assertEqual(next(generation), (3 + 0x41, "A", None))

    def test_cancel_loses_nothing(self):
        with self.model.session() as session, proofinfer.Cancel() as cancel:
            generation = self.generate(session, max_tokens=20, cancel=cancel)
            tokens = []
            while len(tokens) < 20:
                cancel.request()
                self.assertRaises(proofinfer.CancelledError, next, generation)
                cancel.reset()
                tokens.append(next(generation).token)
            self.assertEqual(tokens, self.expected(20))

    def test_a_session_that_moved(self):
        with self.model.session() as session:
            generation = self.generate(session)
            next(generation)
            session.append([5])
            self.assertRaises(proofinfer.StateError, next, generation)

    def test_arguments_out_of_bounds(self):
        with self.model.session(context_length=4) as session:
            self.assertRaises(proofinfer.ContextError, session.generate, [1] * 5, self.tokenizer)
            self.assertRaises(proofinfer.StateError, session.generate, [], self.tokenizer)
            self.assertRaises(proofinfer.ArgumentError, session.generate, [384], self.tokenizer)
            self.assertRaises(proofinfer.ArgumentError, session.generate, [1], self.tokenizer, max_tokens=-1)
            self.assertRaises(proofinfer.ArgumentError, session.generate, [1], self.tokenizer, stop_tokens=[384])
            with proofinfer.Sampler(5) as sampler:
                self.assertRaises(proofinfer.ArgumentError, session.generate, [1], self.tokenizer, sampler)


if __name__ == "__main__":
    unittest.main()
