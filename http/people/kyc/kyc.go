// Package kyc serves the KYC decisions and their pictures, a part of section 4.16 of the interface (D-KYC-01,
// 02, 05, 07, 09).
package kyc

import (
	"cmp"
	"context"
	"encoding/base64"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/picture"
	"castellan/domain/people/kyc"
	"castellan/http/rest"
)

const section = "4.16 KYC and levels"

// Group serves the endpoints.
type Group struct{ Service *kyc.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return append(rest.Section(section,
		rest.Get("/user/get-kyc-images", "Get the newest KYC pictures", rest.Tenant, g.images,
			fault.InvalidField, fault.RecordNotFound, fault.Overloaded).
			For(rest.SelfOrAdmin).
			Try("userId=${user.id}").
			Doc("getKycImages", "Pictures re-encoded for display, as data URLs; null for a missing picture. Without any "+
				"KYC document, data is empty. Users see their own pictures, administrators those of userId."),
		rest.Post("/user/update-kyc", "Approve or reject the identity of an account", rest.Tenant, g.decide,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"userId":"${user.id}","kycConfirm":"manuelApproved","userDocumentId":["${saveDocument.data.id}"],`+
				`"documentId":"${saveDocument.data.id}"}`).Names(rest.Standing, "userId").
			Doc("updateKyc", "Possible once, for an account pending a decision. The documents become active or deActive, "+
				"and the user is notified in the account and by mail."),
		rest.Post("/user/update-confirmed", "Approve or reject the address of an account", rest.Tenant, g.confirm,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"userId":"${user.id}","addressConfirmed":"manuelApproved"}`).Names(rest.Standing, "userId").
			Doc("updateConfirmed", "The address documents become active or deActive, and the user is notified in the "+
				"account, by mail and by SMS. waitingApproval reverts a decision without a notification."),
	), rest.Section("Extensions: KYC",
		rest.Get("/admin/kyc-case", "Get the KYC case of an account", rest.Tenant, g.show,
			fault.RecordNotFound).
			Try("userId=${user.id}").
			Doc("getKycCase", "Returns the account, the results of the checks, and the last decision. A check is null if "+
				"its result is unknown. The identity number is not included."),
	).For(rest.Admin).Extended()...)
}

type imagesRequest struct {
	UserID *string `json:"userId" doc:"for administrators: the account; default: the caller"`
}

type kycDocument struct {
	DocumentID string `json:"documentId" doc:"the newest document; empty: none" example:"01JD3XF9P2E6H4J8K3N5Q7S1TV"`
	Data       any    `json:"data" schema:"KycImages"`
}

// shown has the keys of data if there is a KYC document.
type shown struct {
	Front  *string `json:"frontImage"`
	Back   *string `json:"backImage"`
	Selfie *string `json:"selfieImage"`
}

func (g Group) images(ctx context.Context, who rest.Caller, in imagesRequest) (kycDocument, error) {
	userID := cmp.Or(rest.Or(in.UserID, ""), who.UserID)
	if !who.AsAdmin && userID != who.UserID {
		return kycDocument{}, fault.New(fault.Forbidden, "the documents belong to another user")
	}
	all, err := g.Service.Images(ctx, who.By(), userID)
	if all.DocumentID == "" {
		return kycDocument{Data: rest.None{}}, err
	}
	return kycDocument{all.DocumentID, shown{dataURL(all.Front), dataURL(all.Back), dataURL(all.Selfie)}}, err
}

func dataURL(p *picture.Picture) *string {
	if p == nil {
		return nil
	}
	return new("data:" + string(p.Format) + ";base64," + base64.StdEncoding.EncodeToString(p.Bytes))
}

type decideRequest struct {
	UserID string `json:"userId"`
	// waitingApproval is refused with its own message (D-KYC-01).
	KYCConfirm     string  `json:"kycConfirm" enum:"waitingApproval,manuelApproved,ocrOrNfcApproved,rejected"`
	RejectedResult *string `json:"rejectedResult" doc:"required for rejected" doc.maxLength:"2000" example:"Blurred"`

	RejectedResultJSON *map[string]any `json:"rejectedResultJson" doc:"rejectedResult by tr, en, ar; other keys are kept"`

	UserDocumentID []string `json:"userDocumentId" doc:"the reviewed documents" maxItems:"100"`
	DocumentID     string   `json:"documentId" doc:"the document of the decision" example:"01JD3XF9P2E6H4J8K3N5Q7S1TV"`
}

type kycDecision struct {
	UserID         string   `json:"userId"`
	KYCConfirm     string   `json:"kycConfirm" example:"manuelApproved"`
	RejectedResult *string  `json:"rejectedResult" example:"The picture is blurred."`
	UserDocumentID []string `json:"userDocumentId"`
	DocumentID     string   `json:"documentId" example:"01JD3XF9P2E6H4J8K3N5Q7S1TV"`
}

func (g Group) decide(ctx context.Context, who rest.Caller, in decideRequest) (rest.Data[kycDecision], error) {
	err := g.Service.Decide(ctx, who.By(), kyc.Verdict{UserID: in.UserID, KYCConfirm: in.KYCConfirm,
		Reason: in.RejectedResult, Reasons: rest.Or(in.RejectedResultJSON, nil), DocumentIDs: in.UserDocumentID,
		DocumentID: in.DocumentID})
	out := kycDecision{in.UserID, in.KYCConfirm, in.RejectedResult, in.UserDocumentID, in.DocumentID}
	if in.KYCConfirm != user.Rejected {
		out.RejectedResult = nil
	}
	return rest.Data[kycDecision]{Data: out}, err
}

type confirmRequest struct {
	UserID             string  `json:"userId"`
	AddressConfirmed   string  `json:"addressConfirmed" enum:"waitingApproval,manuelApproved,rejected,approved"`
	AddressDescription *string `json:"addressDescription" doc:"reason" doc.maxLength:"2000" example:"The bill is too old."`
}

type addressDecision struct {
	UserID             string  `json:"userId"`
	AddressConfirmed   string  `json:"addressConfirmed" example:"manuelApproved"`
	AddressDescription *string `json:"addressDescription" example:"The bill is older than three months."`
}

func (g Group) confirm(ctx context.Context, who rest.Caller, in confirmRequest) (rest.Data[addressDecision], error) {
	if in.AddressConfirmed == "approved" { // the same in the words of the documents (D-KYC-05)
		in.AddressConfirmed = user.ManuelApproved
	}
	err := g.Service.Confirm(ctx, who.By(), in.UserID, in.AddressConfirmed, rest.Or(in.AddressDescription, ""))
	return rest.Data[addressDecision]{Data: addressDecision(in)}, err
}
