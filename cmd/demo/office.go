package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/job"
	"castellan/domain/money/accounting"
	"castellan/domain/office/broadcast"
	"castellan/domain/office/staffrequest"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/office"
)

// office creates the pending and the finished work of the staff.
func (r *run) office(ctx context.Context) {
	r.approvals(ctx)
	r.jobs(ctx)
	r.companies(ctx)
	r.providers(ctx)
	r.treasury(ctx)
}

// services are the deployed services.
var services = []string{"castellan-api", "castellan-web", "rates-worker", "ledger-report", "mail-relay"}

// approvals requests deployments and access over the months. The last requests are pending.
func (r *run) approvals(ctx context.Context) {
	a := staffrequest.Service{Deploys: office.NewDeploys(r.DB), VPNs: office.NewVPNs(r.DB),
		Users: account.NewUsers(r.DB), Changes: r.changes("", nil)}
	admin := audit.By{UserID: r.team[0].ID}
	const many = 36
	for n := range many {
		s := sourceOf(r.Seed, "approval", n)
		at := r.Now.AddDate(0, 0, -10*(many-n)).Add(time.Duration(9+s.IntN(8)) * time.Hour)
		who := r.team[1+n%3]
		status := staffrequest.Approved
		if n%5 == 2 {
			status = staffrequest.Rejected
		}
		waits := n >= many-5
		r.Clock.set(at)
		service := pick(s, services)
		d := value(a.AddDeploy(ctx, audit.By{UserID: who.ID}, staffrequest.Deploy{
			Request: staffrequest.Request{Status: staffrequest.Pending,
				Type: []string{"release", "hotfix", "rollback"}[n%3]},
			ServiceName: service, OriginalServiceName: service, BuildNumber: fmt.Sprint("1.", n, ".", s.IntN(9)),
			Minutes: int64(5 + s.IntN(40))}))
		v := value(a.AddVPN(ctx, audit.By{UserID: who.ID}, who.ID, staffrequest.VPN{
			Request:  staffrequest.Request{Status: staffrequest.Pending, Type: []string{"NEW", "RENEW"}[n%2]},
			UserName: who.named.mail}))
		if waits {
			continue
		}
		r.Clock.set(at.Add(time.Duration(1+s.IntN(20)) * time.Hour))
		comment := "fine"
		if status == staffrequest.Rejected {
			comment = "not in the week of a release"
		}
		value(a.ChangeDeploy(ctx, admin, d.ID, func(d *staffrequest.Deploy) { d.Status, d.Comment = status, comment }))
		value(a.ChangeVPN(ctx, admin, v.ID, func(v *staffrequest.VPN) { v.Status, v.Comment = status, comment }))
	}
}

// jobParams returns the parameters of a job, from which its subject is read.
func jobParams(kind string, n int, at time.Time) any {
	switch kind {
	case broadcast.NotificationKind:
		titles := []string{"A week without fees", "Planned maintenance", "AVAX is listed", "A reminder about security"}
		return map[string]any{"message": notification.Message{Topic: "announcements", Title: titles[n/3%len(titles)]}}
	case accounting.Kind:
		day := at.Truncate(24 * time.Hour)
		return accounting.Period{From: day.AddDate(0, 0, -7), To: day, Invoice: day}
	default:
		return map[string]int{"n": n}
	}
}

// jobs creates some jobs of each state. Unfinished jobs are due in a hundred years, so no node ever works on them.
func (r *run) jobs(ctx context.Context) {
	store := kit.NewJobs(r.DB)
	for n := range 24 {
		s := sourceOf(r.Seed, "job", n)
		at := r.Now.Add(-time.Duration(24-n) * 7 * time.Hour)
		kind := []string{"fetch-rates", broadcast.NotificationKind, accounting.Kind}[n%3]
		params := value(json.Marshal(jobParams(kind, n, at)))
		id := s.id(at)
		total := int64(20 + s.IntN(400))
		j := job.Job{ID: id, Kind: kind,
			Key: "demo-" + id, State: job.Done, Version: 1, Total: total,
			ActorID: []string{job.ScheduleActor, r.team[3].ID, r.team[2].ID}[n%3],
			Params:  r.Ring.Seal(params, []byte(id)), CreatedAt: at, StartedAt: at.Add(time.Second),
			BeatAt: at.Add(time.Minute)}
		j.Done, j.FinishedAt = total, at.Add(time.Minute)
		switch {
		case n < 6 && n%2 == 0:
			j.State, j.Done, j.Failed, j.Error = job.Failed, total-3, 3, "the provider does not answer"
			j.Failures = []job.Failure{
				{Reason: "INVALID_STATE", Text: "refused by the server (MAIL)", Count: 2,
					Refs: []string{r.team[4].ID, r.team[5].ID}},
				{Reason: "UNAVAILABLE", Text: "no device could be notified", Count: 1, Refs: []string{r.team[6].ID}}}
		case n < 6:
			j.State, j.Done, j.Skipped = job.Cancelled, total/2, total-total/2
		case n >= 21:
			j.State = []job.State{job.Queued, job.Running, job.Paused}[n-21]
			j.Done, j.FinishedAt, j.NextAt = total/3, time.Time{}, at.AddDate(100, 0, 0)
		}
		_, _, err := store.Add(ctx, j)
		check(err)
	}
}
