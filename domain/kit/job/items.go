package job

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// snapshotPage is how many recipients are recorded in one commit: few enough that no request waits long for the writer.
const snapshotPage = 500

// While recipients are recorded, the cursor is noting and the last ref. Afterwards it is the number of the last item up
// to which all are settled.
const noting = ">"

// items advances a job with Items by one step: one page of recipients, or one window of items. open is j with unsealed
// parameters.
func (r *Runner) items(ctx context.Context, k Items, j, open Job) (Job, error) {
	after, sending := strings.CutPrefix(j.Cursor, noting)
	if sending = !sending && j.Cursor != ""; !sending {
		return r.note(ctx, k, j, open, after)
	}
	from, err := strconv.ParseInt(j.Cursor, 10, 64)
	if err != nil {
		return r.saveFailure(ctx, j, err)
	}
	window, err := r.Store.Items(ctx, ItemQuery{JobID: j.ID, After: from, Limit: Window,
		States: []ItemState{ItemNew, ItemSending}})
	if err != nil {
		return j, err
	}
	lost := slices.DeleteFunc(slices.Clone(window), func(i Item) bool { return i.State != ItemSending })
	if len(lost) > 0 {
		return r.recover(ctx, j, lost)
	}
	switch {
	case j.Cancel:
		return r.save(ctx, j, func(j Job) Job { return j.ended(Cancelled, r.Now()) })
	case len(window) == 0:
		return r.save(ctx, j, func(j Job) Job { return j.stepped(j.Finish(j.Result), r.Now()) })
	}
	if k.Group > 0 { // a window ends with its group
		group := (window[0].N - 1) / int64(k.Group)
		window = slices.DeleteFunc(window, func(i Item) bool { return (i.N-1)/int64(k.Group) != group })
	}
	return r.window(ctx, k, j, open, window)
}

// note records the next page of recipients.
func (r *Runner) note(ctx context.Context, k Items, j, open Job, after string) (Job, error) {
	if j.Cancel {
		return r.save(ctx, j, func(j Job) Job { return j.ended(Cancelled, r.Now()) })
	}
	next, writes, err := r.call(ctx, func(ctx context.Context, _ Job) (Job, []commit.Write, error) {
		refs, err := k.Snapshot(ctx, open, after, snapshotPage)
		next, writes := j, make([]commit.Write, len(refs))
		for i, ref := range refs {
			next.Total++
			writes[i] = AddItem{Item{JobID: j.ID, N: next.Total, Ref: ref}}
		}
		if next.Cursor = "0"; len(refs) >= snapshotPage {
			next.Cursor = noting + refs[len(refs)-1]
		}
		return next, writes, err
	}, j)
	return r.keep(ctx, j, next, writes, err)
}

// recover settles the window of a lost owner: it is unknown which of its items were sent.
func (r *Runner) recover(ctx context.Context, j Job, lost []Item) (Job, error) {
	writes := make([]commit.Write, len(lost))
	for i, item := range lost {
		item.State = ItemUnknown
		writes[i] = SetItem{item}
	}
	r.Log.Warn("items of a job may have been sent", "job", j.ID, "kind", j.Kind, "items", len(lost))
	return r.save(ctx, j, func(j Job) Job {
		j.Unknown += int64(len(lost))
		j.NextAt, j.BeatAt = r.Now(), r.Now()
		return j
	}, writes...)
}

// outcome is the outcome of one item of a window.
type outcome struct {
	state  ItemState
	text   string
	failed error // why the item has failed permanently
	later  error // nothing was sent, and a retry makes sense
	writes []commit.Write
}

// window sends items and saves their outcome.
func (r *Runner) window(ctx context.Context, k Items, j, open Job, window []Item) (Job, error) {
	if k.Effect == AtMostOnce {
		marks := make([]commit.Write, len(window))
		for i, item := range window {
			item.State = ItemSending
			marks[i] = SetItem{item}
		}
		marked, err := r.save(ctx, j, func(j Job) Job { return j.begun(r.Now()) }, marks...)
		if err != nil {
			return j, err
		}
		j = marked
	}
	outcomes := r.sendAll(ctx, k, open, window)
	var failure error
	served := 0
	for _, o := range outcomes {
		if o.state != ItemNew {
			served++
		}
		if o.later != nil {
			failure = o.later
		}
	}
	// The server is up if other items were sent, in this window or before.
	alone := served > 0 || j.Done > 0 && len(window) < Window
	if failure != nil {
		r.Log.Warn("items of a job could not be sent yet", "job", j.ID, "kind", j.Kind, "attempt", j.Attempts+1,
			"err", failure)
	}
	lastTry := failure != nil && alone && j.Attempts+1 >= MaxAttempts
	next, writes := j, make([]commit.Write, 0, len(window))
	next.Cursor = strconv.FormatInt(window[len(window)-1].N, 10)
	for i, item := range slices.Backward(window) {
		o := outcomes[i]
		if lastTry && o.later != nil {
			o.state, o.text, o.failed = ItemFailed, public(o.later), o.later
			outcomes[i] = o
		}
		if o.state == ItemNew {
			next.Cursor = strconv.FormatInt(item.N-1, 10)
		}
		next.Counts.add(o.state)
		item.State, item.Error = o.state, o.text
		writes = append(append(writes, SetItem{item}), o.writes...)
	}
	for i, o := range outcomes {
		if o.failed != nil {
			next = next.Fail(window[i].Ref, o.failed)
		}
	}
	if k.Group > 0 && endOf(next.Cursor)%int64(k.Group) == 0 && endOf(next.Cursor) < next.Total {
		next.Rest = k.Pause
	}
	saved, err := r.save(ctx, j, func(j Job) Job {
		if failure == nil || lastTry {
			return j.stepped(next, r.Now())
		}
		attempts := j.Attempts
		j = j.stepped(next, r.Now())
		if j.State.Over() {
			return j
		}
		j.Attempts = attempts
		return j.afterFailure(public(failure), r.Now())
	}, writes...)
	if refused(err) && k.Effect == Repeatable {
		return r.saveFailure(ctx, j, err)
	}
	return saved, err // with AtMostOnce the window stays marked
}

func endOf(cursor string) int64 {
	n, _ := strconv.ParseInt(cursor, 10, 64)
	return n
}

// add counts an item; Job.Fail counts the failed ones.
func (c *Counts) add(s ItemState) {
	switch s {
	case ItemDone:
		c.Done++
	case ItemUnknown:
		c.Unknown++
	case ItemSkipped:
		c.Skipped++
	}
}

// sendAll sends the items of a window, as many in parallel as the kind allows. Items that are not reached because time
// is up or the job leaves this node stay new.
func (r *Runner) sendAll(ctx context.Context, k Items, j Job, window []Item) []outcome {
	out := make([]outcome, len(window))
	began := time.Now()
	var wg sync.WaitGroup
	turn := make(chan struct{}, max(1, k.Parallel))
	for i, item := range window {
		turn <- struct{}{}
		if i > 0 && time.Since(began) > windowTime || r.Leaving.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-turn }()
			out[i] = r.send(ctx, k, j, item.Ref)
		})
	}
	wg.Wait()
	return out
}

// send serves one item. A cancel does not interrupt it.
func (r *Runner) send(ctx context.Context, k Items, j Job, ref string) outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	writes, err := func() (writes []commit.Write, err error) {
		defer r.caught(j, &err)
		return k.Send(ctx, j, ref)
	}()
	switch {
	case err == nil:
		return outcome{state: ItemDone, writes: writes}
	case errors.Is(err, Skip):
		return outcome{state: ItemSkipped, writes: writes}
	case errors.Is(err, errLater):
		return outcome{state: ItemNew, later: err}
	case errors.Is(err, errUnsure), k.Effect == AtMostOnce && errors.Is(err, errPanic):
		return outcome{state: ItemUnknown, text: public(err), writes: writes}
	}
	if fault.CodeOf(err) == fault.Internal {
		r.Log.Warn("an item of a job failed", "job", j.ID, "kind", j.Kind, "ref", ref, "err", err)
	}
	return outcome{state: ItemFailed, text: public(err), failed: err, writes: writes}
}
