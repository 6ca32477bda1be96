// Package accounting serves the accounting integration of section 4.10 of the interface (D-ADM-01).
package accounting

import (
	"context"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/money/accounting"
	"castellan/http/rest"
)

// Group serves the endpoint.
type Group struct{ Service *accounting.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section("4.10 Admin operations",
		rest.Post("/integration/begin-accounting-integration", "Start the delivery of an accounting journal", rest.Tenant,
			g.begin, fault.InvalidField).Idempotent().
			Try(`{"startDate":"2026-10-01","endDate":"2026-10-31","invoiceDate":"2026-11-01"}`).
			Doc("beginAccountingIntegration", "A job aggregates the bookings by day and currency, and posts them as CSV "+
				"and JSON to accounting.url. The same period returns the same job."),
	)
}

type beginRequest struct {
	StartDate   rest.Time `json:"startDate" example:"2026-10-01"`
	EndDate     rest.Time `json:"endDate" doc:"inclusive; a date includes the whole day" example:"2026-10-31"`
	InvoiceDate rest.Time `json:"invoiceDate" example:"2026-11-01"`
}

type begun struct {
	Accepted bool   `json:"accepted"`
	ID       string `json:"id" doc:"id of the job"`
	Count    int    `json:"count" doc:"number of days in the period" example:"31"`
}

func (g Group) begin(ctx context.Context, who rest.Caller, in beginRequest) (out rest.Data[begun], err error) {
	from, last, err := rest.Span("startDate", &in.StartDate, &in.EndDate)
	if err != nil {
		return out, err
	}
	p := accounting.Period{From: from, To: last.Truncate(time.Millisecond).Add(time.Millisecond),
		Invoice: in.InvoiceDate.Time}
	j, err := g.Service.Begin(ctx, who.By(), p)
	out.Data = begun{true, j.ID, p.Days()}
	return out, err
}
