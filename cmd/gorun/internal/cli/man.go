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
		line(".B %s\n.br", roff(u))
	}
	line(".SH DESCRIPTION\n%s\n.PP\n%s", roff(aboutProgram), roff(aboutFlags))
	line(".SH OPTIONS")
	group := ""
	for i := range table {
		f := &table[i]
		if f.group != group {
			group = f.group
			line(".SS %s", roff(group))
		}
		line(".TP\n.B %s\n%s", roff(strings.TrimSpace(f.spelling())), roff(f.help))
		line("[$%s]", f.env())
		if f.alias != "" {
			line("[$%s]", f.alias)
		}
	}
	line(".SH EXIT STATUS")
	for _, e := range exitCodes {
		line(".TP\n.B %s\n%s", roff(e.code), roff(e.meaning))
	}
	line(".SH EXAMPLES")
	for _, e := range examples {
		line(".TP\n.B %s\n%s", roff(e.command), roff(e.about))
	}
	return b.String()
}

// roff keeps text from being taken for formatting.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
