package launcher

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// facts are what is known of a file that the system does not execute.
type facts struct {
	mode    fs.FileMode
	noexec  bool        // its file system is mounted with noexec
	head    []byte      // its beginning
	loader  string      // the dynamic linker that it names; empty: none
	machine elf.Machine // that of gorun itself
}

// reason explains why exec(2) has refused the file at path.
func reason(errno syscall.Errno, path string) string {
	f, err := examine(path)
	if err != nil {
		return innermost(err).Error()
	}
	if name := interpreter(f.head); errno == syscall.EACCES && f.isExecutable() && name != "" && name != path {
		if i, err := examine(name); err == nil {
			return fmt.Sprintf("so its interpreter %q, which its first line names, cannot: %s", name, i.explain(errno))
		}
	}
	return f.explain(errno)
}

func (f facts) isExecutable() bool { return f.mode.IsRegular() && f.mode&0o111 != 0 && !f.noexec }

// explain returns the cause of an error of exec(2).
func (f facts) explain(errno syscall.Errno) string {
	name := interpreter(f.head)
	switch {
	case errno == syscall.E2BIG:
		return "its arguments and environment are too long for the system"
	case f.mode.IsDir():
		return "it is a directory"
	case errno == syscall.ENOENT && strings.HasSuffix(name, "\r"):
		return fmt.Sprintf(`its lines end as on DOS, with a carriage return, so that it asks for the interpreter %q: sed -i 's/\r$//' FILE removes them`, name)
	case errno == syscall.ENOENT && name != "":
		return fmt.Sprintf("the interpreter %q, which its first line names, does not exist", name)
	case errno == syscall.ENOENT:
		return fmt.Sprintf("its loader %s does not exist here: it was built for another system, such as one with another C library", f.loader)
	case errno == syscall.ENOEXEC:
		return f.explainFormat()
	case f.noexec:
		return "its file system is mounted with noexec: copy it to another one, or give gorun its interpreter and then the file"
	case f.mode&0o111 == 0:
		return "it is not an executable file (chmod +x makes it one; a Python script is named x.py)"
	}
	return "no permission to execute it"
}

// explainFormat says what kind of file the system does not know.
func (f facts) explainFormat() string {
	its := machineOf(f.head)
	switch {
	case len(f.head) == 0:
		return "it is empty"
	case its != elf.EM_NONE && its != f.machine:
		return fmt.Sprintf("it is a program for another processor: for %s, and this machine has %s", processor(its), processor(f.machine))
	case bytes.HasPrefix(f.head, []byte("MZ")):
		return "it is a program for Windows"
	case bytes.HasPrefix(f.head, []byte("\xcf\xfa\xed\xfe")) || bytes.HasPrefix(f.head, []byte("\xca\xfe\xba\xbe")):
		return "it is a program for macOS"
	}
	return "neither a program for this machine nor a script that begins with #! and the path of its interpreter"
}

// interpreter is the one that the first line of a script names, as Linux reads it; empty: there is none.
func interpreter(head []byte) string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	name, _ := cutBlank(strings.Trim(string(line), " \t"))
	return name
}

// machineOf is the processor for which a program is; elf.EM_NONE: not known.
func machineOf(head []byte) elf.Machine {
	if len(head) < 20 || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return elf.EM_NONE
	}
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		return elf.Machine(binary.BigEndian.Uint16(head[18:]))
	}
	return elf.Machine(binary.LittleEndian.Uint16(head[18:]))
}

func processor(m elf.Machine) string { return strings.TrimPrefix(m.String(), "EM_") }

// examine gathers the facts of the file at path.
func examine(path string) (f facts, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return f, err
	}
	f.mode, f.noexec = info.Mode(), isNoexec(path)
	if f.head, err = headOf(path, info); err != nil && !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	if self, err := os.Executable(); err == nil {
		if info, err := os.Stat(self); err == nil {
			head, _ := headOf(self, info)
			f.machine = machineOf(head)
		}
	}
	if machineOf(f.head) != elf.EM_NONE {
		f.loader = loaderOf(path)
	}
	return f, nil
}

// headOf reads the beginning of a regular file: to open a named pipe would wait for its writer.
func headOf(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(file, maxShebang))
}

func loaderOf(path string) string {
	program, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = program.Close() }() // it was only read
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return string(bytes.TrimRight(name, "\x00"))
		}
	}
	return ""
}
