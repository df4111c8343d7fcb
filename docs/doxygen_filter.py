"""Reads the public header and prints it as Doxygen wants it: doxygen_filter.py HEADER. The header itself keeps plain comments.

- The opening comment becomes the file's; a "---- Title ----" comment opens a section, its text being the section's.
- A comment before a declaration becomes the declaration's; declarations that follow without a blank line share it, and the first ones of a
  section that have none take the section's.
- A comment behind a declaration on its line becomes that declaration's.
- The conditional block that defines PROOFINFER_API is left out.
"""
import re
import sys

SECTION = re.compile(r"/\* -+ (.*?) -+(?: \*/)?$")


def escape(text):
    """Comment text is plain: nothing in it is a command or a tag."""
    return re.sub(r"[\\@&<>#%]", lambda m: {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(m.group(), "\\" + m.group()), text)


def comment_text(lines):
    """The lines between the marks of a comment."""
    body = "\n".join(lines)
    body = re.sub(r"^/\*|\*/$", "", body.strip())
    text = [re.sub(r"^ (\* ?)?", "", line).rstrip() for line in body.split("\n")]
    return "\n".join(text).strip("\n").split("\n")


def as_doc(text):
    return ["/**"] + [" * " + escape(line) for line in text] + [" */"]


def convert_declaration(line):
    """A comment behind code becomes the documentation of what stands before it."""
    match = re.match(r"^(.*\S)\s*/\* (.*) \*/$", line)
    return f"{match.group(1)} /**< {escape(match.group(2))} */" if match else line


def convert(lines):
    out = []
    shared = None  # the comment of the current group of declarations
    fresh = False  # whether it was just printed, so that the next declaration has it already
    in_section = False
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("/*"):
            end = i
            while "*/" not in lines[end]:
                end += 1
            block = lines[i:end + 1]
            section = SECTION.match(block[0])
            if i == 0:
                out += ["/**", " * @file"] + [" * " + escape(t) for t in comment_text(block)] + [" */"]
            elif section:
                text = comment_text(["/*"] + block[1:]) if len(block) > 1 else [""]
                if in_section:
                    out.append("/** @} */")
                out += ["/**", f" * @name {escape(section.group(1))}"] + [" * " + escape(t) for t in text] + [" * @{ */"]
                in_section = True
                shared, fresh = (text if any(text) else [section.group(1) + "."]), False
            else:
                shared, fresh = comment_text(block), True
                out += as_doc(shared)
            i = end + 1
            if section and i < len(lines) and not lines[i].strip():
                i += 1  # a blank line here does not end the reach of the section's text
            continue
        if not line.strip():
            shared, fresh = None, False
        is_declaration = re.match(r"(PROOFINFER_API|typedef|#define PROOFINFER_)", line) is not None
        if is_declaration:
            own = re.search(r"/\* .* \*/$", line) is not None
            if not fresh and not own and shared is not None:
                out += as_doc(shared)
            fresh = False
        out.append(convert_declaration(line))
        i += 1
    if in_section:
        out.append("/** @} */")
    return out


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    text = re.sub(r"#if defined\(PROOFINFER_STATIC\).*?\n#endif\n(?=\n)", "", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    text = re.sub(r"#ifndef PROOFINFER_H\n#define PROOFINFER_H\n|#endif /\* PROOFINFER_H \*/\n", "", text)
    print("\n".join(convert(text.split("\n"))))


main()
