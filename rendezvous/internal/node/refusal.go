package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gorun/gorun/rendezvous"
)

// refusalDoc is what job/refusal says. Those who wait for that node learn from it why it does not come.
type refusalDoc struct {
	Node string `json:"node"`
	Why  string `json:"why"` // as that node says it
}

// refusalLimit bounds Why, in bytes.
const refusalLimit = 4 << 10

func (d *refusalDoc) check() error {
	if len(d.Why) > refusalLimit || strings.ContainsFunc(d.Why, unicode.IsControl) || !utf8.ValidString(d.Why) {
		return fmt.Errorf("a reason of %d bytes: want one line of text, at most %d bytes", len(d.Why), refusalLimit)
	}
	return checkTexts(d.Node)
}

// refuse fails the Join, and keeps the node out of the store until the next one.
func (b *member) refuse(err *rendezvous.MisuseError) {
	b.refused = &refusalDoc{Node: b.self.Node.Name(), Why: err.Error()}
	b.fail(err)
}

// sayRefused lets the nodes of the job know of a refusal. A job that is over needs none.
func (w *writer) sayRefused(ctx context.Context, doc *refusalDoc) {
	if doc != nil && doc.check() == nil {
		_ = w.putForJob(ctx, w.keys.refusal(), doc) // this node says it in any case
	}
}

// showRefusal says once to people who wait why another node does not come.
func (b *member) showRefusal(v *view) {
	r := v.refusal
	if r.Why == b.shownRefusal {
		return
	}
	b.shownRefusal = r.Why
	if len(b.joins) > 0 {
		b.log(slog.LevelWarn, r.Node+" was refused: "+strings.ReplaceAll(r.Why, "this node", "that node"))
	}
}
