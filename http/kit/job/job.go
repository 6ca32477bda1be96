// Package job serves the extensions that list and cancel background jobs, for administrators (D-EXT-01).
package job

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/http/rest"
)

const section = "Extensions: jobs"

// Group serves the section.
type Group struct{ Service *job.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/jobs", "List background jobs, newest first", rest.Tenant, g.list, fault.InvalidField).
			Try("type=sweep-files&status=done&limit=1").
			Doc("listJobs", "Finished jobs are kept for 30 days."),
		rest.Get("/admin/jobs/{id}", "Get a background job, or wait for it with Prefer: wait=N", rest.TenantOrService,
			g.show, fault.RecordNotFound).Holds().Tags().Try("id=${listJobs.type=sweep-files.id}").
			Doc("getJob", "With Prefer: wait=N, the response is delayed until the job finishes, until its version no "+
				"longer matches If-None-Match, or for at most N seconds."),
		rest.NamesBy(rest.Post("/admin/jobs/{id}/cancel", "Cancel a background job", rest.Tenant, g.cancel,
			fault.RecordNotFound).
			TryLast(`{"id":"${listJobs.type=sweep-files.id}"}`).
			Doc("cancelJob", "The job stops before its next step; the response waits up to two seconds for the stop. "+
				"Remaining items count as skipped. A finished job stays unchanged."), g.starter),
	).For(rest.Admin).Extended()
}

type listRequest struct {
	Type   *string `json:"type" example:"accounting"`
	Status *string `json:"status" enum:"queued,running,paused,cancelled,done,failed"`
	rest.Paging
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (out rest.Reply[[]record], err error) {
	if in.Type != nil && *in.Type == "" {
		return out, fault.Invalid("type", "must not be blank")
	}
	q := job.Query{Kind: rest.Or(in.Type, ""), State: job.State(rest.Or(in.Status, ""))}
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.List, g.shown(who))
}

type record struct {
	ID         string     `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Type       string     `json:"type" example:"accounting"`
	Subject    string     `json:"subject" example:"2026-01-01 – 2026-01-31" doc:"title of a message, days of a journal"`
	ActorID    string     `json:"actorId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA" doc:"or operator, schedule, service:NAME"`
	Status     string     `json:"status" enum:"queued,running,paused,cancelled,done,failed"`
	Done       int64      `json:"done" example:"9960"`
	Total      int64      `json:"total" example:"10000" doc:"grows while recipients are collected"`
	Failed     int64      `json:"failed" example:"17"`
	Unknown    int64      `json:"unknown" example:"20" doc:"items of unknown outcome after a node failure"`
	Skipped    int64      `json:"skipped" example:"3"`
	StartedAt  *rest.Time `json:"startedAt" example:"2026-01-31T10:00:00.000Z" doc:"null before the first step"`
	UpdatedAt  rest.Time  `json:"updatedAt" example:"2026-01-31T10:04:59.000Z" doc:"time of the last step"`
	FinishedAt *rest.Time `json:"finishedAt" example:"2026-01-31T10:05:00.000Z" doc:"null until the job finishes"`
	Error      *string    `json:"error" example:"the mail server is away" doc:"reason of the last failed attempt"`
	Failures   []failure  `json:"failures,omitempty" doc:"failed items by reason; omitted if there are none"`
}

// failure is the number of items that failed for one reason.
type failure struct {
	Reason string   `json:"reason" example:"INVALID_STATE" doc:"an error code; OTHER combines further reasons"`
	Text   string   `json:"text" example:"refused by the server (MAIL)" doc:"in the requested language"`
	Count  int64    `json:"count" example:"17"`
	First  []string `json:"first" doc:"ids of the first items" example:"[\"01JD3X4Q7V0S8D4T2M6B9N1ZKA\"]"`
}

// shown is a job in the language of a caller.
func (g Group) shown(who rest.Caller) func(job.Job) record {
	return func(j job.Job) record {
		r := recordOf(j)
		if who.Service == "" { // a service client gets the progress alone
			r.Subject, r.ActorID = g.Service.About(j), j.ActorID
		}
		for i, f := range j.Failures {
			r.Failures[i] = failure{f.Reason, rest.InLanguage(f.Text, who.Language), f.Count, f.Refs}
		}
		return r
	}
}

func recordOf(j job.Job) record {
	return record{ID: j.ID, Type: j.Kind, Status: string(j.State), Done: j.Done, Total: j.Total, Failed: j.Failed,
		Unknown: j.Unknown, Skipped: j.Skipped, StartedAt: rest.At(j.StartedAt),
		UpdatedAt: rest.Time{Time: j.BeatAt}, FinishedAt: rest.At(j.FinishedAt), Error: rest.Filled(j.Error),
		Failures: make([]failure, len(j.Failures))}
}

// tag names a version of a job.
func tag(j job.Job) string { return fmt.Sprintf(`"%d"`, j.Version) }

type oneRequest struct {
	ID string `json:"id"`
}

func (g Group) show(ctx context.Context, who rest.Caller, in oneRequest) (out rest.Reply[record], err error) {
	j, err := g.Service.Await(ctx, in.ID, who.Wait, func(j job.Job) bool {
		return j.State.Over() || who.HasTags != "" && !rest.NamesTag(who.HasTags, tag(j))
	})
	if err != nil {
		return out, err
	}
	out = rest.Reply[record]{Body: g.shown(who)(j), Headers: []rest.Header{{Name: "ETag", Value: tag(j)}}}
	if who.Wait > 0 {
		out.Headers = append(out.Headers,
			rest.Header{Name: "Preference-Applied", Value: fmt.Sprintf("wait=%d", int(who.Wait.Seconds()))})
	}
	return out, nil
}

// cancelWait is how long the answer to a cancel waits for the end of the job.
const cancelWait = 2 * time.Second

// starter names the user who started a job.
func (g Group) starter(ctx context.Context, _ rest.Caller, in oneRequest) (rest.Named, error) {
	j, err := g.Service.Store.Get(ctx, in.ID)
	return rest.Named{Users: []string{j.ActorID}, Matter: rest.General}, err
}

func (g Group) cancel(ctx context.Context, who rest.Caller, in oneRequest) (rest.Data[record], error) {
	err := g.Service.Cancel(ctx, who.By(), in.ID)
	if err != nil {
		return rest.Data[record]{}, err
	}
	j, err := g.Service.Await(ctx, in.ID, cancelWait, func(j job.Job) bool { return j.State.Over() })
	return rest.Data[record]{Data: g.shown(who)(j)}, err
}
