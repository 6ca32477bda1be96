package user

import (
	"context"
	"maps"
	"slices"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// dayCount is the number of registrations on a day.
type dayCount struct {
	Description   string `json:"description" format:"date" example:"2026-01-31" doc:"the day (UTC)"`
	CustomerCount int64  `json:"customerCount" example:"12"`
}

func (dayCount) SchemaName() string { return "DailyUserCount" }

func showDay(c user.DayCount) dayCount { return dayCount{c.Day.Format(time.DateOnly), c.Count} }

func (g Group) countsBetween(ctx context.Context, _ rest.Caller, in spanRequest) ([]dayCount, error) {
	span, err := in.span()
	if err != nil {
		return nil, err
	}
	counts, err := g.Directory.CountByDay(ctx, span)
	return rest.Each(counts, showDay), err
}

// month is the number of days of lastMonth (D-USR-05).
const month = 30

func (g Group) lastMonth(ctx context.Context, _ rest.Caller, _ rest.None) ([]dayCount, error) {
	now := g.Now()
	first := user.Day(now).AddDate(0, 0, 1-month)
	counts, err := g.Directory.CountByDay(ctx, user.Span{From: first, To: now})
	if err != nil {
		return nil, err
	}
	out := make([]dayCount, month)
	for i := range out {
		out[i] = showDay(user.DayCount{Day: first.AddDate(0, 0, i)})
	}
	for _, c := range counts {
		out[int(c.Day.Sub(first).Hours())/24] = showDay(c)
	}
	return out, nil
}

type statusRequest struct {
	StatusCode *string `json:"statusCode" example:"active"`
}

// statusCount is the number of accounts of a status.
type statusCount struct {
	StatusCode string `json:"statusCode" example:"active"`
	StatusName string `json:"statusName" example:"Active" doc:"in the requested language"`
	Total      int64  `json:"total" example:"120"`
}

func (statusCount) SchemaName() string { return "UserCountByStatus" }

// names are the English names of the statuses that every installation starts with. Other
// statuses are shown by their code.
var names = map[string]string{"active": "Active", "passive": "Passive", "blocked": "Blocked", "closed": "Closed"}

// byStatus counts the accounts of each known status, including zero, and of each other status
// that an account still has.
func (g Group) byStatus(ctx context.Context, who rest.Caller, in statusRequest) ([]statusCount, error) {
	if p := g.unknown("statusCode", in.StatusCode); p != nil {
		return nil, fault.All([]fault.Problem{*p})
	}
	counts, err := g.Directory.CountByStatus(ctx)
	if err != nil {
		return nil, err
	}
	codes := slices.Clone(g.Statuses())
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		if !slices.Contains(codes, string(s)) {
			codes = append(codes, string(s))
		}
	}
	out := []statusCount{}
	for _, code := range codes {
		if in.StatusCode == nil || *in.StatusCode == code {
			out = append(out, statusCount{code, statusName(code, who.Language), counts[user.Status(code)]})
		}
	}
	return out, nil
}

// LevelName is the number of a level and its label. Levels belong to the area money, above this one.
type LevelName struct {
	ID    int
	Label string
}

// levelCount is the number of accounts of a level.
type levelCount struct {
	LevelID    int64  `json:"levelId" example:"1"`
	LevelLabel string `json:"levelLabel" example:"Confirmed" doc:"empty if the level no longer exists"`
	Total      int64  `json:"total" example:"120"`
}

func (levelCount) SchemaName() string { return "UserCountByLevel" }

// byLevel counts the accounts of each level, and of each that an account still has.
func (g Group) byLevel(ctx context.Context, _ rest.Caller, _ rest.None) ([]levelCount, error) {
	levels, err := g.Levels(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := g.Directory.CountByLevel(ctx)
	out := []levelCount{}
	for _, l := range levels {
		out = append(out, levelCount{int64(l.ID), l.Label, counts[l.ID]})
		delete(counts, l.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, levelCount{int64(id), "", counts[id]})
	}
	return out, err
}

func statusName(code, language string) string {
	name, ok := names[code]
	if !ok {
		return code
	}
	if said, ok := rest.Translated(name, language); ok && language != "en" {
		return said
	}
	return name
}
