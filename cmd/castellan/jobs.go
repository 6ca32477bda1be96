package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/persistence/kit"
)

type jobsCmd struct {
	List   jobsListCmd   `cmd:"" help:"List the background jobs, newest first."`
	Watch  jobsWatchCmd  `cmd:"" help:"Print the progress of a job until it ends."`
	Items  jobsItemsCmd  `cmd:"" help:"List the recipients of a job with their states."`
	Cancel jobsCancelCmd `cmd:"" help:"Cancel a job before its next step."`
	Resend jobsResendCmd `cmd:"" help:"Resend unknown items of a job; continue a failed job."`
}

type jobsListCmd struct {
	Type   string `help:"List only jobs of this type."`
	Status string `help:"List only jobs with this status." enum:"queued,running,paused,cancelled,done,failed," default:""`
	Limit  int    `help:"Maximum number of jobs." default:"50"`
}

func (c jobsListCmd) Run(e *env, v *app.Deployment) error {
	jobs := jobsOf(v)
	found, err := jobs.Store.List(e.ctx, job.Query{Kind: c.Type, State: job.State(c.Status)},
		page.Query[job.Place]{Limit: c.Limit})
	if err != nil {
		return err
	}
	w := e.table()
	for _, j := range found.Records {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", j.ID, j.Kind, j.CreatedAt.Format(time.RFC3339), j.State, inNumbers(j))
	}
	return w.Flush()
}

// inNumbers returns the progress of a job, on one line.
func inNumbers(j job.Job) string {
	var parts []string
	if j.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", j.Done, j.Total))
	}
	for _, count := range []struct {
		n    int64
		what string
	}{{j.Failed, "failed"}, {j.Unknown, "unknown"}, {j.Skipped, "skipped"}} {
		if count.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count.n, count.what))
		}
	}
	if j.Error != "" {
		parts = append(parts, j.Error)
	}
	return strings.Join(parts, ", ")
}

type jobsWatchCmd struct{ jobArg }

func (jobsWatchCmd) Help() string {
	return `Updates the line whenever the job makes progress. The exit status is 0 if the job is
done, and 1 if it failed or was cancelled.`
}

func (c jobsWatchCmd) Run(e *env, v *app.Deployment) error {
	jobs := jobsOf(v)
	shown := ""
	for {
		j, err := jobs.Await(e.ctx, c.Job, time.Second, func(j job.Job) bool { return progress(j) != shown })
		if err != nil {
			return c.describeError(err)
		}
		if line := progress(j); line != shown {
			// Spaces overwrite the rest of a longer line.
			fmt.Fprintf(e.out, "\r%-*s", len(shown), line)
			shown = line
		}
		if err := e.ctx.Err(); err != nil {
			return err
		}
		if !j.State.Over() {
			continue
		}
		fmt.Fprintln(e.out)
		if j.State != job.Done {
			return fmt.Errorf("the job is %s", j.State)
		}
		return nil
	}
}

// progress returns a job as a bar and numbers.
func progress(j job.Job) string {
	const width = 30
	line := j.Kind + " " + string(j.State)
	if j.Total > 0 {
		full := int(width * (j.Done + j.Failed + j.Unknown + j.Skipped) / j.Total)
		line += " [" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
	}
	if numbers := inNumbers(j); numbers != "" {
		line += " " + numbers
	}
	return line
}

type jobsItemsCmd struct {
	jobArg
	State []string `help:"List only recipients in these states." enum:"new,sending,done,failed,unknown,skipped"`
}

func (c jobsItemsCmd) Run(e *env, v *app.Deployment) error {
	jobs := jobsOf(v)
	if _, err := jobs.Store.Get(e.ctx, c.Job); err != nil {
		return c.describeError(err)
	}
	const most = 1000
	q := job.ItemQuery{JobID: c.Job, Limit: most}
	for _, name := range c.State {
		q.States = append(q.States, job.ItemState(slices.Index(job.ItemStates, name)))
	}
	for {
		items, err := jobs.Store.Items(e.ctx, q)
		if err != nil {
			return err
		}
		for _, i := range items {
			fmt.Fprintf(e.out, "%d\t%s\t%s\t%s\n", i.N, i.Ref, job.ItemStates[i.State], i.Error)
			q.After = i.N
		}
		if len(items) < most {
			return nil
		}
	}
}

type jobsCancelCmd struct{ jobArg }

func (c jobsCancelCmd) Run(e *env, v *app.Deployment) error {
	jobs := jobsOf(v)
	if err := jobs.Cancel(e.ctx, audit.Operator, c.Job); err != nil {
		return c.describeError(err)
	}
	j, err := jobs.Store.Get(e.ctx, c.Job)
	if err == nil && (j.State == job.Done || j.State == job.Failed) {
		err = fmt.Errorf("the job is over: %s", j.State)
	}
	return e.print(err, "cancelled", c.Job)
}

type jobsResendCmd struct{ jobArg }

func (jobsResendCmd) Help() string {
	return `If a node is lost while it sends mail or SMS, the state of up to 20 recipients is
unknown: the messages may or may not have been sent. They are not sent again without
this command. "castellan jobs items JOB --state unknown" lists them. A running service
resends within one second; some recipients may get the message twice.

A job that failed, because the mail server was unavailable for too long, continues where
it stopped, and its unknown items are sent again.`
}

func (c jobsResendCmd) Run(e *env, v *app.Deployment) error {
	return e.print(c.describeError(jobsOf(v).Resend(e.ctx, audit.Operator, c.Job)), "queued", c.Job)
}

// jobArg is the job argument of a command.
type jobArg struct {
	Job string `arg:"" help:"Id of the job."`
}

// describeError describes an error for an operator.
func (c jobArg) describeError(err error) error {
	return explained(err, fault.RecordNotFound, "there is no job %q", c.Job)
}

func jobsOf(v *app.Deployment) *job.Service {
	return &job.Service{Store: kit.NewJobs(v.DB), Changes: v.Changes(""), Seal: v.Ring.Seal}
}
