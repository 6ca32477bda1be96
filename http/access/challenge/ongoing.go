package challenge

import (
	"context"
	"time"

	"castellan/domain/access/device"
	"castellan/http/rest"
)

type ongoingRequest struct {
	DeviceID string `json:"deviceId" doc:"the device that signs the request"`
}

// pending is an unanswered push (section 2.1 of the interface).
type pending struct {
	Body string      `json:"body" doc:"text of the question"`
	Data pendingData `json:"data"`
}

func (pending) SchemaName() string { return "PendingPush" }

type pendingData struct {
	ChallengeID string `json:"challengeId"`
	TS          int64  `json:"ts" doc:"creation, epoch ms"`
	MethodID    string `json:"methodId"`
	Action      string `json:"action"`
	ActionTitle string `json:"actionTitle"`
	// NumberMatching is an extension, present if it is on.
	NumberMatching bool `json:"numberMatching,omitempty" doc:"extension: approve with APPROVED:<the starter's number>"`

	Params pendingParams `json:"params"`
}

func (pendingData) SchemaName() string { return "PendingPushData" }

type pendingParams struct {
	IP          string    `json:"ip"`
	DeviceBrand string    `json:"deviceBrand"`
	DeviceModel string    `json:"deviceModel"`
	DeviceDesc  string    `json:"deviceDesc"`
	DateTime    string    `json:"dateTime" doc:"DD.MM.YYYY HH:mm:ss in the configured time zone"`
	Timestamp   int64     `json:"timestamp" doc:"creation, epoch ms"`
	CountryName string    `json:"countryName" doc:"empty if unknown"`
	Expire      int64     `json:"expire" doc:"seconds left until expiry"`
	InfoTable   infoTable `json:"infoTable"`
}

func (pendingParams) SchemaName() string { return "PendingPushParams" }

type infoTable struct {
	Metadata metadata   `json:"metadata"`
	Data     [][]string `json:"data" doc:"[header, value] in the order of infoTableHeaders"`
}

func (infoTable) SchemaName() string { return "InfoTable" }

type metadata struct {
	Type string `json:"type"`
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
}

func (metadata) SchemaName() string { return "InfoTableMetadata" }

func (g Group) ongoing(ctx context.Context, who rest.Caller, in ongoingRequest) ([]pending, error) {
	if in.DeviceID != who.DeviceID {
		return nil, device.Refused()
	}
	language := ""
	if who.LanguageAsked { // else the user's own language takes precedence (D-GEN-16)
		language = who.Language
	}
	all, err := g.Answers.Ongoing(ctx, who.OwnerID, language, g.CountryName)
	if err != nil {
		return nil, err
	}
	zone := g.Zone
	if zone == nil {
		zone = time.UTC
	}
	out := make([]pending, len(all))
	for i, a := range all {
		c, from := a.Challenge, a.Challenge.Starter
		p := pendingParams{IP: from.IP, DeviceBrand: from.Brand, DeviceModel: from.Model, DeviceDesc: from.Description,
			DateTime: time.UnixMilli(c.CreatedAt).In(zone).Format("02.01.2006 15:04:05"), Timestamp: c.CreatedAt,
			Expire: int64(a.Left / time.Second),
			InfoTable: infoTable{Metadata: metadata{Type: "table", Rows: len(a.Rows), Cols: 2},
				Data: make([][]string, len(a.Rows))}}
		for j, row := range a.Rows {
			p.InfoTable.Data[j] = row[:]
		}
		if g.CountryName != nil && from.Country != "" {
			p.CountryName = g.CountryName(from.Country, who.Language)
		}
		out[i] = pending{Body: a.Text, Data: pendingData{ChallengeID: c.ID, TS: c.CreatedAt, MethodID: a.Method.ID,
			Action: c.Action, ActionTitle: a.Title,
			NumberMatching: a.Method.Number != "", Params: p}}
	}
	return out, nil
}
