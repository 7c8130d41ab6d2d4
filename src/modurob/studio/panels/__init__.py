"""The panels of the studio's page, one file each."""
