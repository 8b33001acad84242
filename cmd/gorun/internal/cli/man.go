package cli

import (
	"fmt"
	"strings"
)

// manual is the manual page gorun(1), in roff.
func manual() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH GORUN 1 "" "gorun %s"`, roff(version))
	line(".SH NAME\ngorun \\- %s", roff(summary))
	line(".SH SYNOPSIS")
	for _, u := range usages {
		line(".B %s\n.br", roff(u.line))
	}
	line(".SH DESCRIPTION\n%s\n.PP\n%s", roff(aboutProgram), roff(aboutFlags))
	line(".SH COMMANDS\n%s", roff(aboutCommands))
	for _, u := range usages[1:] {
		line(".TP\n.B %s\n%s", roff(u.line), roff(u.about))
	}
	line(".SH OPTIONS")
	group := ""
	for i := range table {
		f := &table[i]
		if f.group != group {
			group = f.group
			line(".SS %s", roff(group))
		}
		line(".TP\n.B %s\n%s", roff(strings.TrimSpace(f.spelling())), roff(f.usage()))
		line("[$%s]", f.env())
		if f.alias != "" {
			line("[$%s]", f.alias)
		}
	}
	line(".TP\n.B \\-h, \\-\\-help\n%s", roff(aboutHelp))
	line(".TP\n.B \\-\\-version\n%s", roff(aboutVersion))
	line(".SH EXIT STATUS")
	for _, e := range exitCodes {
		line(".TP\n.B %s\n%s", roff(e.code), roff(e.meaning))
	}
	line(".SH EXAMPLES\n%s", roff(aboutExamples))
	for _, e := range examples {
		line(".PP\n%s:\n.PP\n.RS\n.nf\n%s\n.fi\n.RE", roff(upperFirst(e.about)), roff(e.command))
	}
	return b.String()
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// roff escapes text that roff would take for formatting.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
