package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// nodeLimits returns how many nodes a round may have.
func (v *view) nodeLimits(c *Config) (least, most int) {
	if v.limits != nil {
		return v.limits.Min, v.limits.Max
	}
	return c.Min, c.Max
}

// showNeed shows how many nodes the job needs, if that has changed. A round with fewer nodes than gorun scale allows goes on, and needs all of
// them. Only its members know how many it has.
func (c *connection) showNeed() {
	v := c.view
	if _, member := v.assignment(c.key); !member {
		if v.current != nil {
			c.need = 0
		}
		return
	}
	least, _ := v.nodeLimits(c.config)
	if need := min(least, v.round.Size); need != c.need {
		c.need = need
		c.emit(showNeed{need})
	}
}

// Limits returns how many nodes a round may have now, as far as this node knows.
func (r *Rendezvous) Limits() (least, most int) {
	least, most = r.driver.config.Min, r.driver.config.Max
	limits := make(chan [2]int, 1)
	if r.driver.turn(func() {
		least, most := r.driver.machine.conn.view.nodeLimits(r.driver.config)
		limits <- [2]int{least, most}
	}) {
		l := <-limits
		least, most = l[0], l[1]
	}
	return least, most
}

// Scale sets how many nodes a round may have. If the present one has more, it is over; the nodes with the lowest ranks stay, and the others
// wait as spares. If it has fewer, it goes on.
func (r *Rendezvous) Scale(ctx context.Context, least, most int) error {
	doc := limitsDoc{Min: least, Max: most}
	if err := doc.check(); err != nil {
		return &rendezvous.MisuseError{Err: err}
	}
	return r.driver.change(ctx, func(ctx context.Context, x *executor) error { return x.putForJob(ctx, x.keys.limits(), doc) })
}

// change changes the job for a user, unless the store has lost it.
func (d *driver) change(ctx context.Context, request func(context.Context, *executor) error) error {
	if err := d.lost(); err != nil {
		return err
	}
	return inTime(ctx, func(ctx context.Context) error { return request(ctx, &d.executor) })
}

// lost says to a user that the store has lost the job; nil: it has not, as far as this node knows.
func (d *driver) lost() error {
	lost := make(chan bool, 1)
	if d.turn(func() { lost <- d.machine.conn.lost }) && <-lost {
		return errors.New("etcd has lost this job, which can only end")
	}
	return nil
}

// inTime does for a user what takes one request, and says so if the store does not answer.
func inTime(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := request(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the etcd over which the nodes meet has not answered within %v", callTimeout)
	}
	return err
}

var errNoJob = errors.New("the job is over")

// updateForJob writes what update makes of a document of the job and of what others find, unless that is nil or the job is over.
func (w *writer) updateForJob(ctx context.Context, key string, update func(was store.KV, found []store.Found) (any, error), others ...store.Query) error {
	queries := append([]store.Query{one(w.keys.config()), one(key)}, others...)
	for {
		answer, err := w.store.Read(ctx, queries...)
		if err != nil {
			return fmt.Errorf("the job cannot be read: %w", err)
		}
		settings, was := answer.Found[0].Only(), answer.Found[1].Only()
		if settings.Written == 0 {
			return errNoJob
		}
		config, err := readJobConfig(settings)
		if err != nil {
			return err
		}
		doc, err := update(was, answer.Found[2:])
		if err != nil || doc == nil {
			return err
		}
		when := append(w.isStill(config), isMissing(w.keys.state()), isAt(key, was.Written))
		answer, err = w.when(when...).put(key, doc, config.lease).orGet(one(w.keys.state())).commit(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("the job cannot be changed: %w", err)
		case answer.Done:
			return nil
		case answer.Found[0].Count > 0:
			return errNoJob
		}
	}
}

// putForJob writes a document of the job, unless that is over.
func (w *writer) putForJob(ctx context.Context, key string, doc any) error {
	return w.updateForJob(ctx, key, func(store.KV, []store.Found) (any, error) { return doc, nil })
}
