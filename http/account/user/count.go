package user

import (
	"context"
	"maps"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// dailyUserCount is the number of registrations on a day.
type dailyUserCount struct {
	Description   string `json:"description" format:"date" example:"2026-01-31" doc:"the day (UTC)"`
	CustomerCount int64  `json:"customerCount" example:"12"`
}

func showDay(c user.DayCount) dailyUserCount {
	return dailyUserCount{c.Day.Format(time.DateOnly), c.Count}
}

func (g Group) countsBetween(ctx context.Context, _ rest.Caller, in spanRequest) ([]dailyUserCount, error) {
	span, err := in.span()
	if err != nil {
		return nil, err
	}
	counts, err := g.Directory.CountByDay(ctx, span)
	return rest.Each(counts, showDay), err
}

// month is the number of days of lastMonth (D-USR-05).
const month = 30

func (g Group) lastMonth(ctx context.Context, _ rest.Caller, _ rest.None) ([]dailyUserCount, error) {
	now := g.Now()
	first := user.Day(now).AddDate(0, 0, 1-month)
	counts, err := g.Directory.CountByDay(ctx, user.Span{From: first, To: now})
	if err != nil {
		return nil, err
	}
	out := make([]dailyUserCount, month)
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

// userCountByStatus is the number of accounts of a status.
type userCountByStatus struct {
	StatusCode string `json:"statusCode" example:"active"`
	StatusName string `json:"statusName" example:"Active" doc:"in the requested language"`
	Total      int64  `json:"total" example:"120"`
}

// names are the English names of the statuses that every installation starts with. Other
// statuses are shown by their code.
var names = map[string]string{"active": "Active", "passive": "Passive", "blocked": "Blocked", "closed": "Closed"}

// byStatus counts the accounts of each known status, including zero, and of each other status
// that an account still has.
func (g Group) byStatus(ctx context.Context, who rest.Caller, in statusRequest) ([]userCountByStatus, error) {
	if !g.knows(in.StatusCode) {
		return nil, fault.Invalid("statusCode", "is not a known status")
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
	out := []userCountByStatus{}
	for _, code := range codes {
		if in.StatusCode == nil || *in.StatusCode == code {
			out = append(out, userCountByStatus{code, statusName(code, who.Language), counts[user.Status(code)]})
		}
	}
	return out, nil
}

// LevelName is the number of a level and its label. Levels belong to the area money, above this one.
type LevelName struct {
	ID    int
	Label string
}

// userCountByLevel is the number of accounts of a level.
type userCountByLevel struct {
	LevelID    int64  `json:"levelId" example:"1"`
	LevelLabel string `json:"levelLabel" example:"Confirmed" doc:"empty if the level no longer exists"`
	Total      int64  `json:"total" example:"120"`
}

// byLevel counts the accounts of each level, and of each that an account still has.
func (g Group) byLevel(ctx context.Context, _ rest.Caller, _ rest.None) ([]userCountByLevel, error) {
	levels, err := g.Levels(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := g.Directory.CountByLevel(ctx)
	out := []userCountByLevel{}
	for _, l := range levels {
		out = append(out, userCountByLevel{int64(l.ID), l.Label, counts[l.ID]})
		delete(counts, l.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, userCountByLevel{int64(id), "", counts[id]})
	}
	return out, err
}

func statusName(code, language string) string {
	name, ok := names[code]
	if !ok {
		return code
	}
	return rest.InLanguage(name, language)
}
