package agent

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func show(actions []action) string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case finish:
			out = append(out, fmt.Sprintf("finish{%+v}", a.err))
		case announce:
			out = append(out, fmt.Sprintf("announce{rank %d, %d others}", a.Rank, a.others))
		default:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T%v", a, a), "agent."))
		}
	}
	return strings.Join(out, " ")
}

// TestTable is the whole policy by state, with one restart left. Run it with -v to see the table.
func TestTable(t *testing.T) {
	const want = `
joining   started        -> running
joining   startFailed    -> done      finish{no round}
joining   roundOver      -> joining
joining   interrupted    -> stopping  cancelJoin{}
joining   signalled      -> joining
running   workerExited 0 -> running
running   workerExited 1 -> stopping  stop{15} announce{rank 0, 1 others}
running   gangGone       -> done      finish{<nil>}
running   roundOver      -> stopping  stop{15}
running   interrupted    -> stopping  stop{2}
running   signalled      -> running   forward{10}
stopping  workerExited 0 -> stopping
stopping  workerExited 1 -> stopping
stopping  gangGone       -> joining   join{1 rank 0 (local rank 0, pid 100): exit code 1; restart 1 of 1 true}
stopping  roundOver      -> stopping
stopping  interrupted    -> stopping
stopping  signalled      -> stopping
done      roundOver      -> done
done      interrupted    -> done
done      signalled      -> done
`
	into := map[state][]event{
		joining:  nil,
		running:  {started{2}},
		stopping: {started{2}, exited(0, 1)},
		done:     {startFailed{errNoRound}},
	}
	whileJoining, whileGang, always := []event{started{2}, startFailed{errNoRound}},
		[]event{gangGone{}}, []event{roundOver{errNewcomer}, sigint, signalled{syscall.SIGUSR1}}
	exits := []event{exited(0, 0), exited(0, 1)}
	possible := map[state][][]event{
		joining:  {whileJoining, always},
		running:  {exits, whileGang, always},
		stopping: {exits, whileGang, always},
		done:     {always},
	}
	var table strings.Builder
	for _, s := range []state{joining, running, stopping, done} {
		for _, group := range possible[s] {
			for _, e := range group {
				m := machine{maxRestarts: 1}
				for _, before := range into[s] {
					m.Step(before)
				}
				name := strings.TrimPrefix(fmt.Sprintf("%T", e), "agent.")
				if x, ok := e.(workerExited); ok {
					name += fmt.Sprintf(" %d", x.Code)
				}
				actions := show(m.Step(e))
				fmt.Fprintln(&table, strings.TrimRight(fmt.Sprintf("%-9s %-14s -> %-9s %s", s, name, m.state, actions), " "))
			}
		}
	}
	t.Log("\n" + table.String())
	if got := "\n" + table.String(); got != want {
		t.Errorf("the table has changed:\n%s\nwant\n%s", got, want)
	}
}
