"""What a run leaves on disk: the column schema, its writer and its reader."""
