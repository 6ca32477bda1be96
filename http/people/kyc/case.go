package kyc

import (
	"context"

	"castellan/domain/people/kyc"
	"castellan/http/rest"
)

type caseRequest struct {
	UserID string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

type kycCase struct {
	UserID           string           `json:"userId"`
	FullName         string           `json:"fullName" example:"Ayşe Yılmaz"`
	BirthDate        *string          `json:"birthDate" example:"1990-05-01"`
	Status           string           `json:"status" example:"active"`
	LevelID          int              `json:"levelId" example:"0"`
	KYCConfirm       string           `json:"kycConfirm" example:"waitingApproval"`
	AddressConfirmed string           `json:"addressConfirmed" example:"waitingApproval"`
	AMLStatus        string           `json:"amlStatus" example:"notRisky"`
	CreatedAt        rest.Time        `json:"createdAt"`
	Types            kycDocumentTypes `json:"types"`
	Checks           kycChecks        `json:"checks"`
	Decision         *lastKycDecision `json:"decision"`
}

type kycDocumentTypes struct {
	Front   int64 `json:"front" example:"1"`
	Back    int64 `json:"back" example:"2"`
	Selfie  int64 `json:"selfie" example:"3"`
	Address int64 `json:"address" example:"4"`
}

type kycChecks struct {
	Number     *bool `json:"identityNumber" doc:"the identity number is stored, and its check digits are correct"`
	Register   *bool `json:"register" doc:"the national register confirmed the person; null: not checked"`
	Name       *bool `json:"name" doc:"the account has the confirmed name"`
	BirthDate  *bool `json:"birthDate" doc:"the account has the confirmed date of birth"`
	SameNumber int   `json:"sameNumber" doc:"other accounts with the same identity number" example:"0"`
}

type lastKycDecision struct {
	KYCConfirm     string    `json:"kycConfirm" example:"rejected"`
	RejectedResult *string   `json:"rejectedResult" example:"The picture is blurred."`
	DocumentID     string    `json:"documentId" example:"01JD3XF9P2E6H4J8K3N5Q7S1TV"`
	DecidedBy      string    `json:"decidedBy" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	DecidedAt      rest.Time `json:"decidedAt" example:"2026-01-31T10:00:00.000Z"`
}

func (g Group) show(ctx context.Context, _ rest.Caller, in caseRequest) (kycCase, error) {
	c, err := g.Service.Case(ctx, in.UserID)
	if err != nil {
		return kycCase{}, err
	}
	u, t, k := c.User, g.Service.Types, c.Checks
	return kycCase{UserID: u.ID, FullName: u.FullName(), BirthDate: rest.Filled(u.BirthDate), Status: string(u.Status),
		LevelID: u.Level, KYCConfirm: u.KYCConfirm, AddressConfirmed: u.AddressConfirmed, AMLStatus: u.AMLStatus,
		CreatedAt: rest.Time{Time: u.CreatedAt},
		Types:     kycDocumentTypes{t.Front, t.Back, t.Selfie, t.Address},
		Checks:    kycChecks{k.Number, k.Register, k.Name, k.BirthDate, k.Same}, Decision: last(c.Last)}, nil
}

func last(d *kyc.Decision) *lastKycDecision {
	if d == nil {
		return nil
	}
	return &lastKycDecision{d.Value, rest.Filled(d.Reason), d.DocumentID, d.DecidedBy, rest.Time{Time: d.At}}
}
